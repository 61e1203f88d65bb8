import { deflateSync } from 'node:zlib'

export interface PdfStream {
  dictionary?: string
  data: string | Uint8Array
  compress?: boolean
}

/** A PDF file of these objects, numbered from 1, the first being the catalog. What is in them is up to the caller. */
export function buildPdf(objects: (string | PdfStream)[], { trailer = '' } = {}): Uint8Array {
  const parts: Uint8Array[] = []
  let size = 0
  const write = (data: string | Uint8Array) => {
    const bytes = typeof data === 'string' ? Buffer.from(data, 'latin1') : data
    parts.push(bytes)
    size += bytes.length
  }
  write('%PDF-1.7\n%\xe2\xe3\xcf\xd3\n')
  const offsets = objects.map((object, index) => {
    const offset = size
    write(`${index + 1} 0 obj\n`)
    if (typeof object === 'string') write(object)
    else writeStream(object, write)
    write('\nendobj\n')
    return offset
  })
  const start = size
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  write(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}`)
  write(`trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`)
  return Buffer.concat(parts)
}

function writeStream(
  { dictionary = '', data, compress = false }: PdfStream,
  write: (data: string | Uint8Array) => void,
): void {
  const plain = typeof data === 'string' ? Buffer.from(data, 'latin1') : data
  const body = compress ? deflateSync(plain) : plain
  write(`<< /Length ${body.length} ${compress ? '/Filter /FlateDecode' : ''} ${dictionary} >>\nstream\n`)
  write(body)
  write('\nendstream')
}

const HELVETICA = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>'

/** A document with a page for each list of lines. */
export function textPdf(
  pages: string[][],
  font: string = HELVETICA,
  show: (line: string) => string = literal,
): Uint8Array {
  const first = 4
  const kids = pages.map((_, index) => `${first + index * 2} 0 R`).join(' ')
  return buildPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    font,
    ...pages.flatMap((lines, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${first + index * 2 + 1} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
      {
        data: `BT /F1 12 Tf 72 720 Td 14 TL ${lines.map((line) => `${show(line)} Tj T*`).join('\n')} ET`,
        compress: true,
      },
    ]),
  ])
}

const literal = (line: string): string => `(${line.replace(/[\\()]/g, '\\$&')})`

const descriptor = (name: string): string =>
  `/FontDescriptor << /Type /FontDescriptor /FontName /${name} /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 ` +
  '/Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>'

/** A subset font whose codes are glyph numbers, and nothing says which characters these are: `hex` is shown as it is. */
export const unmappedPdf = (hex: string[][], toUnicode = ''): Uint8Array =>
  textPdf(
    hex,
    `<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+Sample /Encoding /Identity-H ${toUnicode} /DescendantFonts [<< /Type /Font ` +
      '/Subtype /CIDFontType2 /BaseFont /ABCDEF+Sample /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> ' +
      `/DW 1000 ${descriptor('ABCDEF+Sample')} >>] >>`,
    (line) => `<${line}>`,
  )

/** Text in one of the predefined CJK encodings, in a font that is not embedded; `hex` is the text in that encoding. */
export const cjkPdf = (encoding: string, ordering: string, hex: string): Uint8Array =>
  textPdf(
    [[hex]],
    `<< /Type /Font /Subtype /Type0 /BaseFont /Sample /Encoding /${encoding} /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 ` +
      `/BaseFont /Sample /CIDSystemInfo << /Registry (Adobe) /Ordering (${ordering}) /Supplement 2 >> /DW 1000 ${descriptor('Sample')} >>] >>`,
    (line) => `<${line}>`,
  )
