import { openCpuClock } from '../cpu-clock.ts'
import type { Extracted, ExtractFailure, ExtractJob } from '../job.ts'
import { notices } from '../notices.ts'
import { layOut } from './document.ts'
import type { PdfDocument, PdfEngine, PdfInfo, PdfPage } from './page.ts'
import { openWithPdfium } from './pdfium-document.ts'
import { openWithPdfJs } from './pdfjs-document.ts'

/** Share of the time after which it stops by itself, to lay out and hand over what it has. */
const OWN_SHARE = 0.75

/**
 * A PDF's text within the limits of F-25; what was not read is said. PDFium reads it, at a third of pdf.js's time; what that
 * takes for broken, or finds no characters in, pdf.js tries, which repairs more and guesses at old fonts.
 */
export async function readPdf(job: ExtractJob): Promise<Extracted> {
  const cpuMs = openCpuClock()
  const bytes = job.bytes.slice() // pdf.js takes what it is given away
  const first = await readWith(openWithPdfium, job.bytes, job, cpuMs)
  if (first !== 'damaged' && !first.isUnreadable) return first.result
  const second = await readWith(openWithPdfJs, bytes, job, cpuMs)
  if (second !== 'damaged' && (first === 'damaged' || !second.isUnreadable)) return second.result
  return first === 'damaged' ? { status: 'failed', failure: 'damaged' } : first.result
}

interface Reading {
  result: Extracted
  /** Most of its pages show text in fonts that do not tell which. */
  isUnreadable: boolean
}

async function readWith(
  open: PdfEngine,
  bytes: Uint8Array,
  job: ExtractJob,
  cpuMs: () => number,
): Promise<Reading | 'damaged'> {
  const opened = await open(bytes)
  if (opened.outcome === 'failed') return opened.failure === 'damaged' ? 'damaged' : answer(failed(opened.failure))
  const { document } = opened
  try {
    const { pageCount } = document
    if (pageCount > 0 && job.pdfPage > pageCount)
      return answer({ status: 'ok', kind: 'pdf', text: '', notices: [notices.pdfPastEnd(pageCount)] })
    const read = await readPages(document, job, cpuMs)
    if (read.pages.length === 0) return document.isFull ? answer(failed('memory')) : 'damaged'
    const { text, heading } = layOut(read.pages, job.format)
    const result: Extracted = {
      status: 'ok',
      kind: 'pdf',
      text,
      format: job.format === 'text' ? 'text' : 'markdown',
      extractor: 'whole',
      notices: noticesOf(read, text, job, pageCount),
      ...(read.next === undefined ? {} : { nextPdfPage: read.next }),
      ...factsOf(await document.info().catch(() => ({})), heading),
    }
    return answer(result, read.unreadable.length * 2 > read.pages.length)
  } finally {
    await document.close().catch(() => {}) // what could be read of it was
  }
}

const answer = (result: Extracted, isUnreadable = false): Reading => ({ result, isUnreadable })
const failed = (failure: ExtractFailure): Extracted => ({ status: 'failed', failure })

interface PagesRead {
  pages: { number: number; page: PdfPage }[]
  /** Pages that show text in fonts that do not tell which, or none at all. */
  unreadable: number[]
  /** The page to go on with, when not all were read. */
  next: number | undefined
  isLate: boolean
}

async function readPages(
  document: PdfDocument,
  { pdfPage, limits }: ExtractJob,
  cpuMs: () => number,
): Promise<PagesRead> {
  const read: PagesRead = { pages: [], unreadable: [], next: undefined, isLate: false }
  const last = Math.min(document.pageCount, pdfPage - 1 + limits.pdfPages)
  let characters = 0
  let number = pdfPage
  for (; number <= last && characters < limits.textBytes; number++) {
    read.isLate = number > pdfPage && cpuMs() > limits.pdfMs * OWN_SHARE
    if (read.isLate) break
    // A page that is broken is one page less; the next may be whole.
    const page = await document.page(number, limits.textBytes - characters).catch(() => undefined)
    if (!page) continue
    const shown = page.runs.reduce((sum, { text }) => sum + text.replace(/\s+/g, '').length, 0)
    if (page.unmapped > shown) read.unreadable.push(number)
    read.pages.push({ number, page: page.unmapped > shown * 4 ? { ...page, runs: [] } : page })
    characters += shown
  }
  if (number <= document.pageCount) read.next = number
  return read
}

function noticesOf(
  { pages, unreadable, next, isLate }: PagesRead,
  text: string,
  job: ExtractJob,
  all: number,
): string[] {
  const said: string[] = []
  const last = next === undefined ? all : next - 1
  if (isLate) said.push(notices.pdfTime(job.pdfPage, last, all))
  else if (next !== undefined || job.pdfPage > 1) said.push(notices.pdfPages(job.pdfPage, last, all))
  const missing = last - job.pdfPage + 1 - pages.length
  if (missing > 0) said.push(notices.pdfBroken(missing))
  if (text === '') said.push(unreadable.length > 0 ? notices.pdfUnreadable(all) : notices.pdfImages(all))
  else if (unreadable.length > 0) said.push(notices.pdfSkipped(unreadable))
  return said
}

/** Names that programs give when a writer gave none. */
const noTitle =
  /^(?:untitled.*|microsoft (?:word|powerpoint) - .*|.*\.(?:docx?|dvi|tex|pdf|indd|pptx?|qxd)|(?:slide|document|page) ?\d*)$/i

function factsOf(info: PdfInfo, heading: string | undefined) {
  const own = info.title?.trim() ?? ''
  const title = own === '' || noTitle.test(own) ? (heading ?? own) : own
  const byline = info.author?.trim().slice(0, 500)
  const language = info.language?.trim()
  return {
    ...(title ? { title } : {}),
    facts: {
      ...(byline ? { byline } : {}),
      ...(info.published ? { published: info.published } : {}),
      ...(language && /^[a-z]{2,3}(?:-[a-z\d]{2,8})*$/i.test(language) ? { language } : {}),
    },
  }
}
