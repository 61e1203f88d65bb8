import type { ImageFormat, ImageMime } from './job.ts'

const formats: Record<string, ImageFormat> = {
  'image/png': 'PNG',
  'image/jpeg': 'JPEG',
  'image/jpg': 'JPEG',
  'image/gif': 'GIF',
  'image/webp': 'WEBP',
}

/** The format that a media type names, when it is one of the four (WM-52). */
export const formatOf = (mediaType: string): ImageFormat | undefined =>
  Object.hasOwn(formats, mediaType) ? formats[mediaType] : undefined

export const mimeOf: Record<ImageFormat, ImageMime> = {
  PNG: 'image/png',
  JPEG: 'image/jpeg',
  GIF: 'image/gif',
  WEBP: 'image/webp',
}

const marks: [format: ImageFormat, mark: Buffer][] = [
  ['PNG', Buffer.from('89504e470d0a1a0a', 'hex')],
  ['JPEG', Buffer.from('ffd8ff', 'hex')],
  ['GIF', Buffer.from('GIF87a')],
  ['GIF', Buffer.from('GIF89a')],
]

/** What the first bytes say; whether it is true, decoding will tell. */
export function sniffFormat(bytes: Uint8Array): ImageFormat | undefined {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 16))
  if (start.toString('latin1', 0, 4) === 'RIFF' && start.toString('latin1', 8, 12) === 'WEBP') return 'WEBP'
  return marks.find(([, mark]) => start.subarray(0, mark.length).equals(mark))?.[0]
}

const PROLOGUE = /^(?:\s+|<\?.*?\?>|<!--.*?-->|<!doctype[^>[]*(?:\[[^\]]*\])?[^>]*>)/is

/** An XML text whose first element is `svg`. */
export function isSvg(bytes: Uint8Array): boolean {
  let rest = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 4_096)).toString('utf8')
  for (let before = ''; rest !== before; ) {
    before = rest
    rest = rest.replace(PROLOGUE, '')
  }
  return /^<(?:[\w-]+:)?svg[\s>/]/i.test(rest)
}
