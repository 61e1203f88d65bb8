/** Code units looked at of a text that is going to be cut: room for the longest result after cleaning. */
const MOST_LOOKED_AT = 20_000

/** Control characters but tab and newline, and what a model or terminal may take for a line's end in a place without any. */
const unwanted = /[\p{Cc}\u2028\u2029\ufeff]/gu

/** A text of several lines, valid, without control characters, no more than one empty line in a row. */
export const clean = (text: string, mostLookedAt = MOST_LOOKED_AT): string =>
  text
    .slice(0, mostLookedAt)
    .toWellFormed()
    .replace(/\r\n?/g, '\n')
    .replace(unwanted, (character) => (character === '\n' || character === '\t' ? character : ' '))
    .replace(/[ \t]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()

/** The same on one line: a title with a line break in it could pass for a result of its own. */
export const oneLine = (text: string): string => clean(text).replace(/\s+/g, ' ')

/** Cut to at most `most` characters, the `…` of a cut text included; never inside a code point (S-47). */
export function clip(text: string, most: number): string {
  if (text.length <= most) return text
  const characters = Array.from(text.slice(0, 2 * (most + 1)))
  return characters.length <= most
    ? text
    : `${characters
        .slice(0, most - 1)
        .join('')
        .trimEnd()}…`
}
