import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { layOut } from '../../services/fetch-worker/src/extract/pdf/document.ts'
import type { PdfEngine, PdfPage } from '../../services/fetch-worker/src/extract/pdf/page.ts'
import { openWithPdfium } from '../../services/fetch-worker/src/extract/pdf/pdfium-document.ts'
import { openWithPdfJs } from '../../services/fetch-worker/src/extract/pdf/pdfjs-document.ts'
import { column, placedPdf } from '../../services/fetch-worker/test/pdf-pages.ts'
import { median, round } from './statistics.ts'
import { wordF1 } from './word-f1.ts'

const ROUNDS = 5
const MAX_PAGES = 100
const MAX_CHARACTERS = 256 * 1024

const engines: Record<string, PdfEngine> = { pdfium: openWithPdfium, 'pdf.js': openWithPdfJs }

/** Processor time a page of both engines, layout included, and how far their texts agree. With a folder: the PDFs in it. */
export async function benchPdf([folder]: string[]): Promise<void> {
  const files = folder === undefined ? [] : readdirSync(folder).filter((name) => name.endsWith('.pdf'))
  const documents: [name: string, bytes: Buffer][] =
    folder === undefined
      ? [['a made-up paper in two columns', Buffer.from(madeUpPaper(60))]]
      : files.map((name) => [name, readFileSync(join(folder, name))])
  for (const [name, bytes] of documents) {
    const times: Record<string, number[]> = {}
    const texts: string[] = []
    let pages = 0
    for (let round = 0; round < ROUNDS; round++) {
      for (const [engine, open] of Object.entries(engines)) {
        const read = await readWith(open, bytes)
        if (read === undefined) continue
        pages = read.pages
        times[engine] = [...(times[engine] ?? []), read.cpuMs / read.pages]
        if (round === 0) texts.push(read.text)
      }
    }
    const shown = Object.entries(times).map(
      ([engine, ms]) => `${engine} ${round(median(ms))} ms a page (${round(1_000 / median(ms), 0)} pages/s a core)`,
    )
    const [one, other] = texts
    const agreement =
      one !== undefined && other !== undefined ? `, word F1 of the two ${round(wordF1(one, other))}` : ''
    console.log(`${name}, ${pages} pages: ${shown.join(', ') || 'not readable'}${agreement}`)
  }
}

async function readWith(
  open: PdfEngine,
  bytes: Buffer,
): Promise<{ text: string; pages: number; cpuMs: number } | undefined> {
  const began = process.cpuUsage()
  const opened = await open(new Uint8Array(bytes))
  if (opened.outcome === 'failed') return undefined
  const { document } = opened
  const pages: { number: number; page: PdfPage }[] = []
  for (let number = 1; number <= Math.min(document.pageCount, MAX_PAGES); number++)
    pages.push({ number, page: await document.page(number, MAX_CHARACTERS) })
  const { text } = layOut(pages, 'markdown')
  await document.close()
  const { user, system } = process.cpuUsage(began)
  return { text, pages: pages.length, cpuMs: (user + system) / 1_000 }
}

/** Pages of about 4,000 characters in two columns, under a running head. */
function madeUpPaper(count: number): Uint8Array {
  const lines = (page: number, side: string) =>
    Array.from({ length: 52 }, (_, at) => `${side} column of page ${page}, line ${at}, says what is`)
  return placedPdf(
    Array.from({ length: count }, (_, at) => ({
      lines: [
        { text: 'A Running Head', x: 60, y: 770 },
        { text: `${at + 1}`, x: 540, y: 770 },
        { text: `${at + 1} A Heading`, x: 60, y: 740, size: 14, font: 'bold' as const },
        ...column(lines(at, 'Left'), 60, 715),
        ...column(lines(at, 'Right'), 320, 715),
      ],
    })),
  )
}
