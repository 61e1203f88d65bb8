const MOST_CHARACTERS = 255

/** Control characters, and those that turn the direction of text: `exe.txt` could be shown for `txt.exe`. */
const UNSEEN = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu

/** A name as it is kept: the last segment of what a client or a program called it, without what no name holds. */
export function fileName(told: string): string {
  const last = told.toWellFormed().split(/[/\\]/).at(-1) ?? ''
  const plain = last.replace(UNSEEN, '').trim()
  return [...plain].slice(0, MOST_CHARACTERS).join('') || 'file'
}

/**
 * FI-09: a download under its own name. RFC 6266 wants the name twice, in ASCII for old clients and in UTF-8 as RFC 8187
 * writes it; what could end the quoted text or the header is in neither.
 */
export function attachment(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]|["\\%;]/g, '_')
  const utf8 = encodeURIComponent(name.toWellFormed()).replace(/['()*]/g, percent)
  return `attachment; filename="${ascii}"; filename*=UTF-8''${utf8}`
}

const percent = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`
