import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'

type Init = typeof import('@embedpdf/pdfium').init

/** As much of the runtime's `WebAssembly` as is used here: the types of Node do not have it. */
interface Wasm {
  compile(bytes: Uint8Array): Promise<WasmModule>
  instantiate(module: WasmModule, imports: WasmImports): Promise<WasmInstance>
}
interface WasmModule {
  readonly [Symbol.toStringTag]: string
}
interface WasmInstance {
  exports: unknown
}
type WasmImports = Record<string, Record<string, unknown>>

const require = createRequire(import.meta.url)
export const pdfiumWasm = require.resolve('@embedpdf/pdfium/pdfium.wasm')

/** What we call of PDFium: its own exports, since the package's wrappers cost more than most of the calls themselves. */
export interface PdfiumCalls {
  memory: { readonly buffer: ArrayBuffer }
  malloc(bytes: number): number
  free(pointer: number): void
  PDFiumExt_Init(): void
  FPDF_LoadMemDocument(data: number, bytes: number, password: number): number
  FPDF_CloseDocument(document: number): void
  FPDF_GetLastError(): number
  FPDF_GetPageCount(document: number): number
  FPDF_GetMetaText(document: number, tag: number, buffer: number, bytes: number): number
  FPDFCatalog_GetLanguage(document: number, buffer: number, bytes: number): number
  FPDF_LoadPage(document: number, index: number): number
  FPDF_ClosePage(page: number): void
  FPDF_GetPageWidthF(page: number): number
  FPDF_GetPageHeightF(page: number): number
  FPDFText_LoadPage(page: number): number
  FPDFText_ClosePage(text: number): void
  FPDFText_CountChars(text: number): number
  FPDFText_GetUnicode(text: number, index: number): number
  FPDFText_HasUnicodeMapError(text: number, index: number): number
  FPDFText_IsGenerated(text: number, index: number): number
  FPDFText_GetLooseCharBox(text: number, index: number, box: number): number
  FPDFText_GetCharOrigin(text: number, index: number, x: number, y: number): number
  FPDFText_GetTextObject(text: number, index: number): number
  FPDFText_GetFontSize(text: number, index: number): number
  FPDFText_GetMatrix(text: number, index: number, matrix: number): number
  FPDFTextObj_GetFont(object: number): number
  FPDFFont_GetBaseFontName(font: number, buffer: number, bytes: number): number
  FPDFFont_GetFlags(font: number): number
  FPDFLink_Enumerate(page: number, position: number, link: number): number
  FPDFLink_GetAnnotRect(link: number, rect: number): number
  FPDFLink_GetAction(link: number): number
  FPDFAction_GetType(action: number): number
  FPDFAction_GetURIPath(document: number, action: number, buffer: number, bytes: number): number
}

export interface Pdfium {
  calls: PdfiumCalls
  /** The heap came to its cap: whatever was thrown since came of that. */
  readonly isFull: boolean
}

/** A document and all that is unpacked of it lie in PDFium's own heap, which grows to this and no further (F-25). */
const MAX_HEAP_BYTES = 128 * 1024 * 1024
/** A heap never shrinks: with one larger than this an instance is not used for another document. */
const KEPT_HEAP_BYTES = 48 * 1024 * 1024

const wasm = Reflect.get(globalThis, 'WebAssembly') as Wasm
let compiled: Promise<WasmModule> | undefined
let kept: Pdfium | undefined

/** Loads the code, so that no document's time is spent on it. */
export async function loadPdfium(): Promise<void> {
  kept ??= await openPdfium()
}

/** An instance for one document; given back when nothing went wrong with it. */
export async function takePdfium(): Promise<Pdfium> {
  const taken = kept ?? (await openPdfium())
  kept = undefined
  return taken
}

export function givePdfium(pdfium: Pdfium): void {
  if (pdfium.calls.memory.buffer.byteLength <= KEPT_HEAP_BYTES) kept = pdfium
}

async function openPdfium(): Promise<Pdfium> {
  compiled ??= readFile(pdfiumWasm).then((bytes) => wasm.compile(bytes))
  const module = await compiled
  // By `require`: an `import` would send it through the TypeScript loader on Node 20.
  const { init } = require('@embedpdf/pdfium') as { init: Init }
  let isFull = false
  let calls: PdfiumCalls | undefined
  const instantiateWasm = (imports: WasmImports, done: (instance: WasmInstance) => void) => {
    const grow = imports.env?.emscripten_resize_heap
    if (typeof grow !== 'function') throw new Error('PDFium grows its heap in a way that cannot be capped')
    const capped = (bytes: number): unknown => {
      isFull ||= bytes >>> 0 > MAX_HEAP_BYTES
      return isFull ? 0 : grow(bytes)
    }
    const bounded = { ...imports, env: { ...imports.env, emscripten_resize_heap: capped } }
    void wasm.instantiate(module, bounded).then((instance) => {
      calls = instance.exports as PdfiumCalls
      done(instance)
    })
    return {}
  }
  const quiet = { print: () => {}, printErr: () => {} }
  await init({ ...quiet, instantiateWasm } as unknown as Parameters<Init>[0])
  if (!calls) throw new Error('PDFium was not instantiated')
  calls.PDFiumExt_Init()
  const opened = calls
  return {
    calls: opened,
    get isFull() {
      return isFull
    },
  }
}
