import { type Opened, type PdfDocument, type PdfInfo, type PdfPage, pdfDate } from './page.ts'
import { givePdfium, type Pdfium, type PdfiumCalls, takePdfium } from './pdfium.ts'
import { readPdfiumPage } from './pdfium-page.ts'

const PASSWORD_ERROR = 4

/** Opens a document in PDFium, which takes the empty password by itself. */
export async function openWithPdfium(bytes: Uint8Array): Promise<Opened> {
  const pdfium = await takePdfium()
  const { calls } = pdfium
  const data = calls.malloc(bytes.length)
  if (data === 0) return { outcome: 'failed', failure: 'memory' }
  new Uint8Array(calls.memory.buffer, data, bytes.length).set(bytes)
  let document = 0
  try {
    document = calls.FPDF_LoadMemDocument(data, bytes.length, 0)
  } catch {
    // The heap of an instance that trapped is in no known state: the instance is left to be collected.
    return { outcome: 'failed', failure: pdfium.isFull ? 'memory' : 'damaged' }
  }
  if (document === 0) {
    const failure = calls.FPDF_GetLastError() === PASSWORD_ERROR ? 'password' : 'damaged'
    calls.free(data)
    givePdfium(pdfium)
    return { outcome: 'failed', failure }
  }
  return { outcome: 'opened', document: opened(pdfium, data, document) }
}

function opened(pdfium: Pdfium, data: number, document: number): PdfDocument {
  const { calls } = pdfium
  let isBroken = false
  /** What PDFium throws is a trap, after which the instance is of no use. */
  const sound = <T>(call: () => T): T => {
    if (isBroken) throw new Error('PDFium has stopped')
    try {
      return call()
    } catch (thrown) {
      isBroken = true
      throw thrown
    }
  }
  return {
    pageCount: calls.FPDF_GetPageCount(document),
    get isFull() {
      return pdfium.isFull
    },
    info: async (): Promise<PdfInfo> => sound(() => readInfo(calls, document)),
    page: async (number: number, maxCharacters: number): Promise<PdfPage> =>
      sound(() => {
        const page = calls.FPDF_LoadPage(document, number - 1)
        if (page === 0) return undefined
        const read = readPdfiumPage(calls, document, page, maxCharacters)
        calls.FPDF_ClosePage(page)
        // what did not fit is missing from the page without a word
        if (pdfium.isFull) throw new Error('PDFium has no memory left')
        return read
      }) ?? Promise.reject(new Error('the page is not there')),
    async close(): Promise<void> {
      if (isBroken) return
      sound(() => calls.FPDF_CloseDocument(document))
      calls.free(data)
      givePdfium(pdfium)
    },
  }
}

function readInfo(calls: PdfiumCalls, document: number): PdfInfo {
  const meta = (tag: string): string => {
    const name = calls.malloc(tag.length + 1)
    new Uint8Array(calls.memory.buffer, name, tag.length + 1).set([...Buffer.from(tag, 'latin1'), 0])
    const text = readUtf16(calls, (buffer, size) => calls.FPDF_GetMetaText(document, name, buffer, size))
    calls.free(name)
    return text
  }
  const language = readUtf16(calls, (buffer, size) => calls.FPDFCatalog_GetLanguage(document, buffer, size))
  const published = pdfDate(meta('CreationDate')) ?? pdfDate(meta('ModDate'))
  return {
    title: meta('Title'),
    author: meta('Author'),
    language,
    ...(published === undefined ? {} : { published }),
  }
}

const MAX_STRING_BYTES = 8 * 1024

/** A string that PDFium writes as UTF-16LE with a NUL at its end; a longer one than anybody means is none. */
function readUtf16(calls: PdfiumCalls, write: (buffer: number, bytes: number) => number): string {
  const size = write(0, 0)
  if (size <= 2 || size > MAX_STRING_BYTES) return ''
  const buffer = calls.malloc(size)
  write(buffer, size)
  const text = Buffer.from(calls.memory.buffer, buffer, size - 2).toString('utf16le')
  calls.free(buffer)
  return text
}
