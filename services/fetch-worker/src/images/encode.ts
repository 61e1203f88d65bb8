import sharp, { type Sharp } from 'sharp'
import type { ImageFormat, ImageMime } from './job.ts'

/** Decoded pixels, upright and in 8-bit sRGB. */
export interface Pixels {
  data: Buffer
  width: number
  height: number
  channels: 1 | 2 | 3 | 4
  isOpaque: boolean
}

export interface Encoded {
  data: Buffer
  width: number
  height: number
  mimeType: ImageMime
}

const qualities = [85, 70, 55, 40]
const lowest = 40
/** Even a size that was guessed too small is not far from the largest that fits. */
const MOST_SHRINK = 0.5
const MARGIN = 0.95

/**
 * The best image of at most `maxBytes`: first at lower and lower quality, then at smaller and smaller size (WM-55).
 * Undefined when not even a single pixel fits.
 */
export async function encodeWithin(pixels: Pixels, from: ImageFormat, maxBytes: number): Promise<Encoded | undefined> {
  let best: Encoded | undefined
  for (const encode of encodersFor(from, pixels.isOpaque)) {
    best = await encode(pixels, 1)
    if (best.data.length <= maxBytes) return best
  }
  let scale = 1
  while (best && best.data.length > maxBytes) {
    if (best.width === 1 && best.height === 1) return undefined
    scale *= Math.max(MOST_SHRINK, Math.min(MARGIN, Math.sqrt(maxBytes / best.data.length) * MARGIN))
    best = await lossy(from, pixels.isOpaque, lowest)(pixels, scale)
  }
  return best
}

type Encoder = (pixels: Pixels, scale: number) => Promise<Encoded>

/** What was without loss stays so while it fits. */
function encodersFor(from: ImageFormat, isOpaque: boolean): Encoder[] {
  const steps = qualities.map((quality) => lossy(from, isOpaque, quality))
  return from === 'PNG' || from === 'GIF' ? [png, ...steps] : steps
}

const png: Encoder = (pixels, scale) =>
  encoded(pixels, scale, 'image/png', (image) => image.png({ compressionLevel: 9, adaptiveFiltering: true }))

/** JPEG knows no transparency (WM-56). */
const lossy = (from: ImageFormat, isOpaque: boolean, quality: number): Encoder =>
  from === 'WEBP' || !isOpaque
    ? (pixels, scale) => encoded(pixels, scale, 'image/webp', (image) => image.webp({ quality }))
    : (pixels, scale) => encoded(pixels, scale, 'image/jpeg', (image) => image.jpeg({ quality }))

async function encoded(
  { data, width, height, channels }: Pixels,
  scale: number,
  mimeType: ImageMime,
  to: (image: Sharp) => Sharp,
): Promise<Encoded> {
  const size = scaledSize({ width, height }, scale)
  const image = sharp(data, { raw: { width, height, channels }, limitInputPixels: false })
  const resized = scale < 1 ? image.resize({ ...size, fit: 'fill' }) : image
  return { data: await to(resized).toBuffer(), ...size, mimeType }
}

/** To the nearest pixel, and never to nothing (WM-55). */
export const scaledSize = ({ width, height }: { width: number; height: number }, scale: number) => ({
  width: Math.max(1, Math.round(width * scale)),
  height: Math.max(1, Math.round(height * scale)),
})
