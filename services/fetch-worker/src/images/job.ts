import { z } from 'zod'

export const imageFormat = z.enum(['PNG', 'JPEG', 'GIF', 'WEBP'])
export type ImageFormat = z.infer<typeof imageFormat>

export const imageMime = z.enum(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
export type ImageMime = z.infer<typeof imageMime>

/** One image to be made ready for a model, as it came from the network. */
export interface ImageJob {
  bytes: Uint8Array
  /** What its `Content-Type` said; absent when there was none. */
  declared: ImageFormat | undefined
  maxEdgePx: number
  maxEncodedBytes: number
  /** An image of more is refused from its header (WM-54). */
  maxPixels: number
  ms: number
}

const sizes = { width: z.int().positive(), height: z.int().positive() }

/** What the process answers: parsed where it comes back, since the process it comes from may be in any state. */
export const prepared = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('ok'),
    format: imageFormat,
    /** Of the original. */
    ...sizes,
    mimeType: imageMime,
    /** The image made smaller; absent: it is fine as it came (WM-56). */
    made: z.object({ ...sizes, data: z.instanceof(Uint8Array) }).optional(),
  }),
  z.object({
    status: z.literal('failed'),
    failure: z.enum([
      'not_an_image',
      'mislabelled',
      'svg',
      'too_many_pixels',
      'damaged',
      'unfitting',
      'time',
      'memory',
      'crash',
    ]),
  }),
])
export type Prepared = z.infer<typeof prepared>
