import { buildPdf } from '@tollgate/testing'

/** A line of text at a place, in points from the lower left corner. */
export interface Placed {
  text: string
  x: number
  y: number
  size?: number
  font?: 'plain' | 'bold' | 'mono'
}

export interface PlacedPage {
  lines: Placed[]
  links?: { url: string; box: [left: number, bottom: number, right: number, top: number] }[]
  rotate?: number
  /** Before every line. */
  matrix?: string
}

const FONTS = { plain: 'F1', bold: 'F2', mono: 'F3' }
const FIRST = 6

/** A document whose lines stand where they are put. */
export function placedPdf(pages: PlacedPage[], { info = '' } = {}): Uint8Array {
  const number = (at: number): number => FIRST + at * 2
  return buildPdf(
    [
      '<< /Type /Catalog /Pages 2 0 R /Lang (en-GB) >>',
      `<< /Type /Pages /Kids [${pages.map((_, at) => `${number(at)} 0 R`).join(' ')}] /Count ${pages.length} >>`,
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>',
      '<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>',
      ...pages.flatMap((page, at) => [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Rotate ${page.rotate ?? 0} /Contents ${number(at) + 1} 0 R ` +
          `/Resources << /Font << /F1 3 0 R /F2 4 0 R /F3 5 0 R >> >> /Annots [${(page.links ?? []).map(annotation).join(' ')}] >>`,
        { data: page.lines.map((line) => draw(line, page.matrix)).join('\n'), compress: true },
      ]),
      `<< ${info} >>`,
    ],
    { trailer: `/Info ${number(pages.length)} 0 R` },
  )
}

const draw = ({ text, x, y, size = 10, font = 'plain' }: Placed, matrix = '1 0 0 1'): string =>
  `BT /${FONTS[font]} ${size} Tf ${matrix} ${x} ${y} Tm ${literal(text)} Tj ET`

const annotation = ({ url, box }: { url: string; box: number[] }): string =>
  `<< /Type /Annot /Subtype /Link /Rect [${box.join(' ')}] /Border [0 0 0] /A << /Type /Action /S /URI /URI (${url}) >> >>`

/** A string in WinAnsi, the bullet among it. */
const literal = (text: string): string =>
  `<${Array.from(text, (character) => (character === '•' ? '95' : character.charCodeAt(0).toString(16).padStart(2, '0'))).join('')}>`

/** Lines under each other, from the top. */
export const column = (
  texts: string[],
  x: number,
  top: number,
  style: Partial<Placed> & { leading?: number } = {},
): Placed[] => texts.map((text, at) => ({ ...style, text, x, y: top - at * (style.leading ?? 12) }))
