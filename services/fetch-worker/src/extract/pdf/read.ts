import type { PDFDocumentLoadingTask, PDFDocumentProxy, PDFPageProxy } from 'pdfjs-dist/types/src/display/api.d.ts'
import { openCpuClock } from '../cpu-clock.ts'
import type { Extracted, ExtractLimits } from '../job.ts'
import { notices } from '../notices.ts'
import { openPageText } from './page-text.ts'
import { loadPdfJs, pdfjsData } from './pdfjs.ts'
import { isJunk, looksUnmapped, unmappedFonts } from './unmapped.ts'

/** A PDF's text, page by page, within the limits of F-25; what was not read is said. */
export async function readPdf(bytes: Uint8Array, limits: ExtractLimits): Promise<Extracted> {
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
    return await readPages(task, limits)
  } catch (thrown) {
    // pdf.js throws errors of many kinds at a broken document; only the want of a password is told apart.
    return { status: 'failed', failure: isPasswordWanted(thrown) ? 'password' : 'damaged' }
  } finally {
    await task.destroy()
  }
}

/** Share of the time after which it stops by itself, to hand over what it has. */
const OWN_SHARE = 0.85

async function readPages(task: PDFDocumentLoadingTask, limits: ExtractLimits): Promise<Extracted> {
  const cpuMs = openCpuClock()
  const document = await task.promise
  const said: string[] = []
  const unreadable: number[] = []
  let text = ''
  let read = 0
  let broken = 0
  const last = Math.min(document.numPages, limits.pdfPages)
  for (let number = 1; number <= last && text.length <= limits.textBytes; number++) {
    if (cpuMs() > limits.pdfMs * OWN_SHARE) {
      said.push(notices.pdfTime(read, document.numPages))
      break
    }
    const page = await readPage(document, number, limits.textBytes).catch(() => undefined)
    read++
    if (page === undefined) broken++
    else if (page.isUnreadable) unreadable.push(number)
    if (page && page.text !== '') text += (text === '' ? '' : '\n\n') + page.text
  }
  if (broken === read && read > 0) return { status: 'failed', failure: 'damaged' }
  if (read === limits.pdfPages && document.numPages > read) said.push(notices.pdfPages(read, document.numPages))
  if (text === '')
    said.push(unreadable.length > 0 ? notices.pdfUnreadable(document.numPages) : notices.pdfImages(document.numPages))
  else if (unreadable.length > 0) said.push(notices.pdfSkipped(unreadable))
  return { status: 'ok', kind: 'pdf', text, notices: said, ...(await titleOf(document)) }
}

interface ReadPage {
  text: string
  isUnreadable: boolean
}

async function readPage(document: PDFDocumentProxy, number: number, maxCharacters: number): Promise<ReadPage> {
  const page = await document.getPage(number)
  try {
    const found = await pageText(page, maxCharacters)
    const all = found.without(new Set())
    if (!looksUnmapped(all)) return { text: all, isUnreadable: false }
    const text = found.without(await unmappedFonts(page, found.fonts().keys()))
    return text === '' || isJunk(text) ? { text: '', isUnreadable: true } : { text, isUnreadable: false }
  } finally {
    page.cleanup()
  }
}

/** Stops asking once there is more than anybody will be shown. */
async function pageText(page: PDFPageProxy, maxCharacters: number): Promise<ReturnType<typeof openPageText>> {
  const text = openPageText()
  const reader = page.streamTextContent({ includeMarkedContent: false }).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text
    text.add(value.items)
    if (text.characters() > maxCharacters) {
      await reader.cancel(new Error('enough text was read'))
      return text
    }
  }
}

async function titleOf(document: PDFDocumentProxy): Promise<{ title?: string }> {
  const { info } = await document.getMetadata().catch(() => ({ info: {} }))
  const title = 'Title' in info && typeof info.Title === 'string' ? info.Title.trim() : ''
  return title === '' ? {} : { title }
}

const isPasswordWanted = (thrown: unknown): boolean => thrown instanceof Error && thrown.name === 'PasswordException'
