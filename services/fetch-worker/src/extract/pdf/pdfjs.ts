import { access } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, sep } from 'node:path'
import { pdfiumWasm } from './pdfium.ts'

type PdfJs = typeof import('pdfjs-dist/legacy/build/pdf.mjs')

const require = createRequire(import.meta.url)
const folder = dirname(require.resolve('pdfjs-dist/package.json'))
const inFolder = (name: string): string => join(folder, name) + sep

/** Where pdf.js finds what it reads beside a document: character maps, metrics of the standard fonts, decoders (BR-089). */
export const pdfjsData = { cMaps: inFolder('cmaps'), fonts: inFolder('standard_fonts'), wasm: inFolder('wasm') }

/** Rejects when the engines' files are not where they are looked for: without them CJK text would silently come out wrong. */
export async function checkPdfData(): Promise<void> {
  const needed = [
    `${pdfjsData.cMaps}90ms-RKSJ-H.bcmap`,
    `${pdfjsData.cMaps}UniGB-UCS2-H.bcmap`,
    `${pdfjsData.fonts}LiberationSans-Regular.ttf`,
    pdfiumWasm,
  ]
  await Promise.all(needed.map((file) => access(file)))
}

let loaded: PdfJs | undefined

/**
 * Loads pdf.js with its worker in this same thread. By `require`, since an `import` would send its three megabytes through
 * the TypeScript loader on Node 20.
 */
export function loadPdfJs(): PdfJs {
  if (loaded) return loaded
  Object.assign(globalThis, { pdfjsWorker: require('pdfjs-dist/legacy/build/pdf.worker.mjs') })
  loaded = require('pdfjs-dist/legacy/build/pdf.mjs') as PdfJs
  return loaded
}
