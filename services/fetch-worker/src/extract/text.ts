const controls = /[^\P{Cc}\t\n]/gu

/** Valid UTF-8 without control characters (F-34): lines end in LF, and what is left of the others is nothing. */
export const cleanLines = (text: string): string => text.toWellFormed().replace(/\r\n?/g, '\n').replace(controls, '')

const encoder = new TextEncoder()

/** The longest beginning of a text that fits, whole characters only. */
export function fitBytes(text: string, maxBytes: number): { text: string; isCut: boolean } {
  if (text.length * 3 <= maxBytes) return { text, isCut: false }
  const { read } = encoder.encodeInto(text, new Uint8Array(maxBytes))
  return { text: text.slice(0, read), isCut: read < text.length }
}
