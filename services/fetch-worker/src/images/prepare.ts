import sharp, { type Sharp } from 'sharp'
import { encodeWithin, type Pixels, scaledSize } from './encode.ts'
import { isSvg, mimeOf, sniffFormat } from './identify.ts'
import type { ImageJob, Prepared } from './job.ts'

sharp.cache(false)
// Nothing but the four formats is ever parsed, whatever bytes a site sends under their names.
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({
  operation: [
    'VipsForeignLoadPngBuffer',
    'VipsForeignLoadJpegBuffer',
    'VipsForeignLoadNsgifBuffer',
    'VipsForeignLoadWebpBuffer',
  ],
})

const failed = (failure: Extract<Prepared, { status: 'failed' }>['failure']): Prepared => ({
  status: 'failed',
  failure,
})

/** Makes an image fit for a model, or says why it is none. Runs in a process of its own, which may be ended at any moment. */
export async function prepareImage(job: ImageJob): Promise<Prepared> {
  const format = sniffFormat(job.bytes)
  if (format === undefined && isSvg(job.bytes)) return failed('svg')
  if (job.declared !== undefined && format !== job.declared) return failed('mislabelled')
  if (format === undefined) return failed('not_an_image')
  if (format === 'PNG' && pngPixels(job.bytes) > job.maxPixels) return failed('too_many_pixels')
  try {
    const header = await sharp(job.bytes, { limitInputPixels: false }).metadata()
    const { width, height } = header
    if (width * height > job.maxPixels) return failed('too_many_pixels')
    const original = { status: 'ok', format, width, height } as const
    const scale = Math.min(1, job.maxEdgePx / Math.max(width, height))
    if (scale === 1 && job.bytes.length <= job.maxEncodedBytes) {
      await decodeAll(job)
      return { ...original, mimeType: mimeOf[format] }
    }
    const made = await encodeWithin(await decode(job, header.autoOrient, scale), format, job.maxEncodedBytes)
    if (!made) return failed('unfitting')
    const { mimeType, ...image } = made
    return { ...original, mimeType, made: { ...image, data: new Uint8Array(image.data) } }
  } catch (thrown) {
    return failed(failureOf(thrown instanceof Error ? thrown.message : ''))
  }
}

/** A PNG may claim more than its decoder is ready to hear of (its first chunk is IHDR, and begins with both sides). */
function pngPixels(bytes: Uint8Array): number {
  if (bytes.length < 24) return 0
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  return view.getUint32(16) * view.getUint32(20)
}

/** The decoder tells in words alone; whatever it has to say of an image otherwise, the image is not as it should be. */
function failureOf(message: string): 'time' | 'memory' | 'damaged' {
  if (/timeout/i.test(message)) return 'time'
  return /out of memory|unable to allocate|cannot allocate/i.test(message) ? 'memory' : 'damaged'
}

/** The first frame, upright. What breaks off or breaks its format is an error. */
const open = ({ bytes, maxPixels, ms }: ImageJob): Sharp =>
  sharp(bytes, { limitInputPixels: maxPixels, failOn: 'error', autoOrient: true }).timeout({
    seconds: Math.ceil(ms / 1_000),
  })

/** What is handed on as it came has been decoded as well: no model is shown a picture that cannot be opened (BR-105). */
async function decodeAll(job: ImageJob): Promise<void> {
  await open(job).resize({ width: 8, height: 8, fit: 'fill', fastShrinkOnLoad: false }).raw().toBuffer()
}

async function decode(job: ImageJob, upright: { width: number; height: number }, scale: number): Promise<Pixels> {
  const image = open(job).toColourspace('srgb')
  const resized = scale < 1 ? image.resize({ ...scaledSize(upright, scale), fit: 'fill' }) : image
  const { data, info } = await resized.raw({ depth: 'uchar' }).toBuffer({ resolveWithObject: true })
  const { width, height, channels } = info
  const raw = { raw: { width, height, channels }, limitInputPixels: false }
  const isOpaque = channels === 1 || channels === 3 || (await sharp(data, raw).stats()).isOpaque
  return { data, width, height, channels, isOpaque }
}
