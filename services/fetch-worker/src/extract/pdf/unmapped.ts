import type { PDFPageProxy } from 'pdfjs-dist/types/src/display/api.d.ts'

/** Share of characters that no text has much of, from which a page's fonts are looked at. */
const SUSPICIOUS_SHARE = 0.01
/** Text has at least this share of lower-case letters or letters of other scripts; lists of figures and capitals may not. */
const LETTER_SHARE = 0.4

/** Text that may be glyph numbers shown as characters. Cheap, and wrong now and then: the fonts decide (BR-088). */
export function looksUnmapped(text: string): boolean {
  const shown = text.replace(/\s/g, '')
  if (shown === '') return false
  return (
    count(shown, /[\p{Cc}\p{Co}\ufffd]/gu) > shown.length * SUSPICIOUS_SHARE ||
    count(shown, /[\p{Ll}\p{Lo}\p{Lm}]/gu) < shown.length * LETTER_SHARE
  )
}

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0

/**
 * Of these fonts, those whose codes are glyph numbers with no map to characters. pdf.js shows such codes as if they were
 * characters; that a font has no map it only tells with the font itself, which drawing the page loads.
 */
export async function unmappedFonts(page: PDFPageProxy, names: Iterable<string>): Promise<Set<string>> {
  await page.getOperatorList()
  const unmapped = new Set<string>()
  for (const name of names) {
    const font: unknown = page.commonObjs.has(name) ? page.commonObjs.get(name) : undefined
    if (hasIdentityMap(font)) unmapped.add(name)
  }
  return unmapped
}

/** pdf.js's stand-in for a missing map is a range of codes, where a map of the document's is a table. */
const hasIdentityMap = (font: unknown): boolean =>
  typeof font === 'object' &&
  font !== null &&
  'composite' in font &&
  font.composite === true &&
  'toUnicode' in font &&
  typeof font.toUnicode === 'object' &&
  font.toUnicode !== null &&
  'firstChar' in font.toUnicode
