/** What a body is read as. `sniff` leaves it to its bytes. */
export type Reading = 'html' | 'text' | 'xml' | 'pdf' | 'sniff' | 'sniff-document'

/** Media type, lower case and without parameters; undefined when the header is absent or names none. */
export function mediaType(contentType: string | undefined): string | undefined {
  const type = contentType?.split(';')[0]?.trim().toLowerCase()
  return type !== undefined && /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(type) ? type : undefined
}

/** The `charset` parameter, in any case, quoted or not. */
export const declaredCharset = (contentType: string | undefined): string | undefined =>
  /;\s*charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))/i
    .exec(contentType ?? '')
    ?.slice(1)
    .find((each) => each !== undefined)

const textual = new Set(['application/json', 'application/javascript', 'application/x-ndjson'])

/** How a declared type is read (F-17); undefined: it is not. */
export function readingOf(contentType: string | undefined): Reading | undefined {
  const type = mediaType(contentType)
  if (type === undefined) return 'sniff'
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html'
  if (type === 'application/pdf') return 'pdf'
  if (type === 'application/octet-stream') return 'sniff-document'
  if (type === 'application/xml' || type === 'text/xml' || type.endsWith('+xml')) return 'xml'
  if (type.startsWith('text/') || type.endsWith('+json') || textual.has(type)) return 'text'
  return undefined
}

const magic: [bytes: number[], name: 'pdf' | 'binary'][] = [
  [[0x25, 0x50, 0x44, 0x46, 0x2d], 'pdf'],
  [[0x50, 0x4b, 0x03, 0x04], 'binary'], // ZIP
  [[0x1f, 0x8b], 'binary'], // GZIP
  [[0x89, 0x50, 0x4e, 0x47], 'binary'],
  [[0xff, 0xd8, 0xff], 'binary'], // JPEG
  [[0x47, 0x49, 0x46, 0x38], 'binary'],
  [[0x7f, 0x45, 0x4c, 0x46], 'binary'],
  [[0x4d, 0x5a, 0x90], 'binary'], // Windows programs
]

/** What the first bytes say by themselves: PDF, some binary format, or nothing. PDF's mark may follow a little rubbish. */
export function sniffBytes(bytes: Uint8Array): 'pdf' | 'binary' | undefined {
  const named = magic.find(([mark]) => mark.every((byte, at) => bytes[at] === byte))?.[1]
  if (named) return named
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 1_024))
  return head.includes('%PDF-1.') || head.includes('%PDF-2.') ? 'pdf' : undefined
}

/** What the header or the first bytes call a PDF. */
export const isPdf = (contentType: string | undefined, bytes: Uint8Array): boolean =>
  readingOf(contentType) === 'pdf' || sniffBytes(bytes) === 'pdf'

const SNIFFED_CHARACTERS = 4_096

/**
 * Whether decoded text is none: over a tenth of its beginning are control characters, or, where nobody said that it is
 * text, a NUL stands there (WM-38). A page is not refused for one that slipped in.
 */
export function looksBinary(text: string, isDeclared: boolean): boolean {
  const length = Math.min(text.length, SNIFFED_CHARACTERS)
  let controls = 0
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0 && !isDeclared) return true
    if (code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d && code !== 0x0c && code !== 0x1b) controls++
  }
  return controls > length / 10
}

/** Text that starts as an HTML page does, after blanks and comments. */
export function startsLikeHtml(text: string): boolean {
  const start = text.slice(0, SNIFFED_CHARACTERS).replace(/^(?:\s|<!--[\s\S]*?-->)+/, '')
  return /^(?:<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>])/i.test(start)
}

/** Looser, for a body that nobody named: any of the elements a page begins with. */
export const hasHtmlBeginning = (text: string): boolean =>
  startsLikeHtml(text) ||
  /^\s*<(?:title|meta|script|style|div|p|h[1-6]|table|ul|a|br|span|article|section|main)[\s>/]/i.test(
    text.slice(0, SNIFFED_CHARACTERS),
  )
