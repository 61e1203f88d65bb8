import type { PDFDocumentProxy, PDFPageProxy, TextItem } from 'pdfjs-dist/types/src/display/api.d.ts'
import { isBoldName, isMonoName, isRtlCode, readable } from './characters.ts'
import { type Opened, type PdfInfo, type PdfPage, pdfDate, type TextRun } from './page.ts'
import { webUrl } from './pdfium-links.ts'
import { loadPdfJs, pdfjsData } from './pdfjs.ts'
import { type Box, type Quadrant, quadrantOf, turn, upright } from './turn.ts'
import { looksUnmapped, unmappedFonts } from './unmapped.ts'

/** Opens a document in pdf.js, which reads some that are damaged in ways PDFium gives up at. */
export async function openWithPdfJs(bytes: Uint8Array): Promise<Opened> {
  const pdfjs = loadPdfJs()
  const task = pdfjs.getDocument({
    data: bytes,
    cMapUrl: pdfjsData.cMaps,
    cMapPacked: true,
    standardFontDataUrl: pdfjsData.fonts,
    wasmUrl: pdfjsData.wasm,
    disableFontFace: true,
    isEvalSupported: false,
    useSystemFonts: false,
    fontExtraProperties: true,
    enableXfa: false,
    maxImageSize: 0, // no image is ever shown
    verbosity: pdfjs.VerbosityLevel.ERRORS,
  })
  try {
    const document = await task.promise
    return {
      outcome: 'opened',
      document: {
        pageCount: document.numPages,
        isFull: false, // it has no cap of its own
        info: () => readInfo(document),
        page: (number, maxCharacters) => readPage(document, number, maxCharacters),
        close: () => task.destroy(),
      },
    }
  } catch (thrown) {
    await task.destroy()
    // pdf.js throws errors of many kinds at a broken document; only the want of a password is told apart.
    return { outcome: 'failed', failure: isPasswordWanted(thrown) ? 'password' : 'damaged' }
  }
}

const isPasswordWanted = (thrown: unknown): boolean => thrown instanceof Error && thrown.name === 'PasswordException'

async function readInfo(document: PDFDocumentProxy): Promise<PdfInfo> {
  const { info } = await document.getMetadata().catch(() => ({ info: {} }))
  const text = (name: string): string => {
    const value: unknown = Reflect.get(info, name)
    return typeof value === 'string' ? value : ''
  }
  const published = pdfDate(text('CreationDate')) ?? pdfDate(text('ModDate'))
  return {
    title: text('Title'),
    author: text('Author'),
    language: text('Language'),
    ...(published === undefined ? {} : { published }),
  }
}

interface Piece extends TextRun {
  quadrant: Quadrant
  box: Box
  font: string
}

async function readPage(document: PDFDocumentProxy, number: number, maxCharacters: number): Promise<PdfPage> {
  const page = await document.getPage(number)
  try {
    const { pieces, isCut } = await readPieces(page, maxCharacters)
    const all = pieces.map(({ text }) => text).join('')
    const left = looksUnmapped(all) ? await unmappedFonts(page, new Set(pieces.map(({ font }) => font))) : new Set()
    const kept = pieces.filter(({ font }) => !left.has(font))
    await addLinks(page, kept)
    const [x0 = 0, y0 = 0, x1 = 0, y1 = 0] = page.view
    const shown = kept.flatMap(({ box: _box, font: _font, ...run }) => readableRun(run))
    const unmapped = all.length - shown.reduce((sum, { text }) => sum + text.length, 0)
    return { ...upright(shown, x1 - x0, y1 - y0), unmapped, isCut }
  } finally {
    page.cleanup()
  }
}

/** Stops asking once there is more than anybody will be shown. */
async function readPieces(page: PDFPageProxy, maxCharacters: number): Promise<{ pieces: Piece[]; isCut: boolean }> {
  const pieces: Piece[] = []
  let shown = 0
  const reader = page.streamTextContent({ includeMarkedContent: false }).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return { pieces, isCut: false }
    for (const item of value.items) {
      if (!('str' in item) || item.str.trim() === '') continue
      shown += item.str.replace(/\s+/g, '').length
      const piece = placed(item, value.styles[item.fontName]?.fontFamily ?? '')
      if (piece) pieces.push(piece)
    }
    if (shown <= maxCharacters) continue
    await reader.cancel(new Error('enough text was read'))
    return { pieces, isCut: true }
  }
}

function placed(item: TextItem, family: string): Piece | undefined {
  const [a = 1, b = 0, c = 0, d = 1, x = 0, y = 0] = item.transform as number[]
  const quadrant = quadrantOf(a, b)
  if (quadrant === undefined) return undefined
  const size = Math.hypot(c, d)
  const along = quadrant % 2 === 0 ? [item.width, size] : [size, item.width]
  const [across = 0, up = 0] = quadrant === 0 || quadrant === 1 ? along : along.map((length) => -length)
  const box = {
    left: Math.min(x, x + across),
    right: Math.max(x, x + across),
    bottom: Math.min(y, y + up),
    top: Math.max(y, y + up),
  }
  return {
    text: item.str,
    ...turn(quadrant, box, x, y),
    size,
    isBold: isBoldName(family),
    isMono: isMonoName(family),
    isRtl: isRtlCode(item.str.codePointAt(0) ?? 0),
    quadrant,
    box,
    font: item.fontName,
  }
}

function readableRun<T extends TextRun>(run: T): T[] {
  const text = Array.from(run.text, (character) => readable(character.codePointAt(0) ?? 0) ?? '').join('')
  return text.trim() === '' ? [] : [{ ...run, text }]
}

async function addLinks(page: PDFPageProxy, pieces: Piece[]): Promise<void> {
  const annotations: unknown[] = await page.getAnnotations().catch(() => [])
  for (const annotation of annotations) {
    if (typeof annotation !== 'object' || annotation === null) continue
    const [url, rect]: unknown[] = [Reflect.get(annotation, 'url'), Reflect.get(annotation, 'rect')]
    const target = typeof url === 'string' ? webUrl(url) : undefined
    if (target === undefined || !Array.isArray(rect)) continue
    const [x0, y0, x1, y1] = rect.map(Number) as [number, number, number, number]
    for (const piece of pieces) {
      const [x, y] = [(piece.box.left + piece.box.right) / 2, (piece.box.bottom + piece.box.top) / 2]
      if (x >= x0 && x <= x1 && y >= y0 && y <= y1) piece.link = target
    }
  }
}
