import { isBoldName, isMonoName } from './characters.ts'
import type { TextRun } from './page.ts'
import type { PdfiumCalls } from './pdfium.ts'
import { type Quadrant, quadrantOf } from './turn.ts'

export type Style = Pick<TextRun, 'size' | 'isBold' | 'isMono'> & { quadrant: Quadrant }

const FIXED_PITCH = 1
const FORCE_BOLD = 1 << 18
const NAME_BYTES = 128

/** How the character at an index is drawn; undefined when it is tilted. Asked of PDFium once for each object and font. */
export function openStyles(calls: PdfiumCalls, text: number): (at: number) => Style | undefined {
  const buffer = calls.malloc(NAME_BYTES)
  const fonts = new Map<number, { isBold: boolean; isMono: boolean }>()
  let object = -1
  let style: Style | undefined

  const fontOf = (font: number) => {
    const known = fonts.get(font)
    if (known) return known
    const size = font === 0 ? 0 : calls.FPDFFont_GetBaseFontName(font, buffer, NAME_BYTES)
    const name =
      size > 0 && size <= NAME_BYTES ? Buffer.from(calls.memory.buffer, buffer, size - 1).toString('latin1') : ''
    const flags = font === 0 ? 0 : Math.max(0, calls.FPDFFont_GetFlags(font))
    const found = {
      isBold: (flags & FORCE_BOLD) !== 0 || isBoldName(name),
      isMono: (flags & FIXED_PITCH) !== 0 || isMonoName(name),
    }
    fonts.set(font, found)
    return found
  }

  return (at) => {
    const next = calls.FPDFText_GetTextObject(text, at)
    if (next === object && next !== 0) return style
    object = next
    const matrix =
      calls.FPDFText_GetMatrix(text, at, buffer) === 1 ? new Float32Array(calls.memory.buffer, buffer, 4) : []
    const [a = 1, b = 0, c = 0, d = 1] = matrix
    const quadrant = quadrantOf(a, b)
    const size = calls.FPDFText_GetFontSize(text, at) * Math.hypot(c, d)
    style = quadrant === undefined ? undefined : { size, quadrant, ...fontOf(calls.FPDFTextObj_GetFont(next)) }
    return style
  }
}
