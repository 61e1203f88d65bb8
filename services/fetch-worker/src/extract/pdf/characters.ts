/** Bullets of the Symbol and Wingdings fonts, at the private-use places these have. */
const symbolBullets = new Set([0xf0b7, 0xf0a7, 0xf076, 0xf0d8, 0xf06e, 0xf0a8, 0xf071])

/**
 * A character as it is read: presentation forms of Latin ligatures spelled out, symbol fonts' bullets as bullets. Empty for
 * what shows nothing; undefined for what only its font could tell (BR-088).
 */
export function readable(code: number): string | undefined {
  if (code === 0x09 || code === 0x20 || code === 0xa0 || (code >= 0x2000 && code <= 0x200a) || code === 0x3000)
    return ' '
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return undefined
  if (code < 0x2000) return code === 0xad ? '\u00ad' : String.fromCharCode(code)
  if (symbolBullets.has(code)) return '•'
  if ((code >= 0xe000 && code <= 0xf8ff) || code === 0xfffd || code >= 0xf0000) return undefined
  if (code === 0x200b || code === 0xfeff || (code >= 0xfffe && code <= 0xffff)) return ''
  if (code >= 0xfb00 && code <= 0xfb06) return String.fromCharCode(code).normalize('NFKC')
  return code > 0xffff ? String.fromCodePoint(code) : String.fromCharCode(code)
}

/** Hebrew, Arabic and their neighbours. */
export const isRtlCode = (code: number): boolean =>
  (code >= 0x590 && code <= 0x8ff) || (code >= 0xfb1d && code <= 0xfdff) || (code >= 0xfe70 && code <= 0xfeff)

const boldNames = /bold|black|heavy|semibold|demi|CMBX|CMSSBX|[a-z]+-?BX\d|,B$|-B$|-Bd/i
const monoNames = /mono|courier|consol|typewriter|cmtt|sftt|code|menlo|fixed/i

export const isBoldName = (name: string): boolean => boldNames.test(name)
export const isMonoName = (name: string): boolean => monoNames.test(name)
