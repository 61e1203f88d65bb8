/** A run of backslashes before a character, as JSON within JSON within a message makes them. */
const ESCAPES = String.raw`\\{0,8}`
/** What goes on with a URL: anything but what ends one in prose, JSON or HTML; an escaped slash goes on. */
const REST = String.raw`(?:\\{1,8}[/u&=]|[^\s"'<>\\\x60])*`

/**
 * A provider's words with every URL of its own host replaced by `<url>` and the key by `<redacted>` (WM-64), however they
 * are spelled there: as they are, percent-encoded any number of times, escaped for JSON or for HTML.
 */
export function scrub(text: string, { origin, key }: { origin: string; key: string }): string {
  const { protocol, host } = new URL(origin)
  const url = `(?:${spelled(`${protocol}//`)})?${spelled(host)}${REST}`
  return text.replace(new RegExp(url, 'gi'), '<url>').replace(new RegExp(spelled(key), 'gi'), '<redacted>')
}

/** A pattern of a text in all its spellings. */
const spelled = (text: string): string => Array.from(text, spellings).join('')

function spellings(character: string): string {
  const code = character.codePointAt(0) ?? 0
  const hex = code.toString(16)
  const bytes = Array.from(Buffer.from(character), (byte) => `%(?:25){0,4}${byte.toString(16).padStart(2, '0')}`)
  const asItIs = character.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)
  return `(?:${ESCAPES}${asItIs}|${bytes.join('')}|\\\\{1,8}u${hex.padStart(4, '0')}|&#(?:x0{0,4}${hex}|0{0,4}${code});)`
}
