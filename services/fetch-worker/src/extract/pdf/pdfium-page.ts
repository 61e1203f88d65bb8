import { isRtlCode, readable } from './characters.ts'
import type { PdfPage, TextRun } from './page.ts'
import type { PdfiumCalls } from './pdfium.ts'
import { openLinks } from './pdfium-links.ts'
import { openStyles, type Style } from './pdfium-styles.ts'
import { turn, upright } from './turn.ts'

type Piece = TextRun & Style
type Placed = Pick<TextRun, 'left' | 'right' | 'baseline'>

/** A gap wider than this many font sizes ends a run: what comes after may be another column or cell. */
const RUN_GAP = 0.9
/** PDFium's mark for a hyphen at the end of a line. */
const END_HYPHEN = 0x02
const PLACE_BYTES = 32

/** The characters of a page, put together to runs of one style on one line. */
export function readPdfiumPage(calls: PdfiumCalls, document: number, page: number, maxCharacters: number): PdfPage {
  const text = calls.FPDFText_LoadPage(page)
  const [width, height] = [calls.FPDF_GetPageWidthF(page), calls.FPDF_GetPageHeightF(page)]
  if (text === 0) throw new Error('the page has no text that can be read')
  const linkAt = openLinks(calls, document, page)
  const styleOf = openStyles(calls, text)
  const placeOf = openPlaces(calls, text)
  const pieces: Piece[] = []
  let current: Piece | undefined
  let unmapped = 0
  let shown = 0
  const all = calls.FPDFText_CountChars(text)
  for (let at = 0; at < all && shown < maxCharacters; at++) {
    const code = calls.FPDFText_GetUnicode(text, at)
    if (code === 0x0a || code === 0x0d) {
      current = undefined
      continue
    }
    const character = code === END_HYPHEN ? '-' : readable(code)
    if (character === undefined || calls.FPDFText_HasUnicodeMapError(text, at) === 1) {
      unmapped++
      continue
    }
    if (character === ' ') {
      if (current && !current.text.endsWith(' ')) current.text += ' '
      continue
    }
    const style = character === '' ? undefined : styleOf(at)
    if (!style) continue
    shown++
    const { box, x, y } = placeOf(at)
    const placed = turn(style.quadrant, box, x, y)
    const link = linkAt((box.left + box.right) / 2, (box.top + box.bottom) / 2)
    if (current && continues(current, placed, style, link)) {
      current.text += character
      current.left = Math.min(current.left, placed.left)
      current.right = Math.max(current.right, placed.right)
    } else {
      current = { text: character, ...placed, ...style, isRtl: isRtlCode(code), ...(link ? { link } : {}) }
      pieces.push(current)
    }
  }
  calls.FPDFText_ClosePage(text)
  return { ...upright(pieces, width, height), unmapped, isCut: shown >= maxCharacters }
}

function continues(run: Piece, next: Placed, style: Style, link: string | undefined): boolean {
  const gap = Math.max(next.left - run.right, run.left - next.right)
  return (
    gap < RUN_GAP * run.size &&
    Math.abs(next.baseline - run.baseline) < 0.1 * run.size &&
    Math.abs(style.size - run.size) < 0.1 * run.size &&
    style.quadrant === run.quadrant &&
    style.isBold === run.isBold &&
    style.isMono === run.isMono &&
    link === run.link
  )
}

/** The box of a character's advance and its origin. The heap may grow at any call, and old views then see nothing. */
function openPlaces(calls: PdfiumCalls, text: number) {
  const scratch = calls.malloc(PLACE_BYTES)
  let view = new DataView(calls.memory.buffer, scratch, PLACE_BYTES)
  return (at: number) => {
    calls.FPDFText_GetLooseCharBox(text, at, scratch)
    calls.FPDFText_GetCharOrigin(text, at, scratch + 16, scratch + 24)
    if (view.buffer !== calls.memory.buffer) view = new DataView(calls.memory.buffer, scratch, PLACE_BYTES)
    const box = {
      left: view.getFloat32(0, true),
      top: view.getFloat32(4, true),
      right: view.getFloat32(8, true),
      bottom: view.getFloat32(12, true),
    }
    return { box, x: view.getFloat64(16, true), y: view.getFloat64(24, true) }
  }
}
