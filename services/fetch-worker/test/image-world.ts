import { fetchImage } from '@tollgate/contracts'
import sharp, { type Sharp } from 'sharp'
import type { z } from 'zod'
import { tenancy, type World } from './world.ts'

export type Image = z.output<(typeof fetchImage)['output']>
export type ImageInput = Partial<z.input<(typeof fetchImage)['input']>>

export const getImage = (world: World, url: string, input: ImageInput = {}): Promise<Image> =>
  world.bus.call(fetchImage, { tenancy, url, ...input }, { deadline: Date.now() + 60_000 })

/** One plain colour: large in pixels, small in bytes. */
export const flat = (width: number, height: number, background = '#336699'): Sharp =>
  sharp({ create: { width, height, channels: background.length > 7 ? 4 : 3, background }, limitInputPixels: false })

/** Noise, of which no coding makes less. */
export function noise(width: number, height: number, channels: 3 | 4 = 3): Sharp {
  const data = Buffer.alloc(width * height * channels)
  let seed = 1
  for (let at = 0; at < data.length; at++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    data[at] = seed >>> 24
  }
  return sharp(data, { raw: { width, height, channels } })
}

/** The left half red, the right half blue: shows which way up it is. */
export const halves = (width: number, height: number): Sharp =>
  flat(width, height, '#ff0000').composite([
    { input: { create: { width: width / 2, height, channels: 3, background: '#0000ff' } }, gravity: 'east' },
  ])

export const decoded = (image: Image): { bytes: Buffer; sharp: Sharp } => {
  if (image.status === 'failed') throw new Error(`no image: ${image.failure} ${image.imageProblem}`)
  const bytes = Buffer.from(image.data, 'base64')
  return { bytes, sharp: sharp(bytes) }
}

/** Three frames of one colour each. */
export async function animated(format: 'gif' | 'webp', width: number, height: number): Promise<Buffer> {
  const frames = await Promise.all(
    ['#ff0000', '#00ff00', '#0000ff'].map((each) => flat(width, height, each).png().toBuffer()),
  )
  const joined = sharp(frames, { join: { animated: true } })
  return format === 'gif' ? joined.gif().toBuffer() : joined.webp({ lossless: true }).toBuffer()
}
