import { writeFileSync } from 'node:fs'
import { logistic, type StoredEnsemble } from '../src/extract/html/main/ensemble.ts'
import { type PageType, pageTypes, type StoredModel, takenBlocks } from '../src/extract/html/main/look.ts'
import type { Table } from './bins.ts'
import { boost, type Growth, randomFrom } from './boost.ts'
import { askedFor } from './features.ts'
import { type ReviewedPage, readPages } from './pages.ts'
import { blockTable, pageTable } from './table.ts'

/**
 * Makes the model by which main content is told from the rest, and says how well it does on sites it has not seen:
 * `node training/train.ts <folder of reviewed pages> [model file to write]`. See README.md beside this file.
 */
const FOLDS = 5
const BLOCKS: Growth = {
  trees: 200,
  leaves: 24,
  rate: 0.07,
  featureShare: 0.2,
  pageShare: 0.5,
  leafWeight: 20,
  damping: 5,
}
const TYPES: Growth = { trees: 50, leaves: 6, rate: 0.1, featureShare: 0.5, pageShare: 0.7, leafWeight: 2, damping: 1 }

interface Weighed {
  table: Table
  labels: Float32Array
  weights: Float32Array
  /** By row. */
  fold: Uint8Array
}

const [folder, target] = process.argv.slice(2)
if (folder === undefined) throw new Error('usage: train.ts <folder of reviewed pages> [model file to write]')
const random = randomFrom(7)
const pages = readPages(folder)
const folds = foldsOf(pages)
say(`${pages.length} pages, ${pages.reduce((sum, { page }) => sum + page.blocks.size, 0)} blocks`)

const blocks = rowsOf(pages, blockTable(described(pages), askedFor))
const likely = byPage(outOfFold(blocks, BLOCKS))
report(likely)
const types = outOfFoldTypes(pages)
say(`page types told right: ${(100 * types).toFixed(1)} %`)
if (target !== undefined) {
  writeFileSync(target, asModule(trainAll(pages, blocks)))
  say(`written to ${target}`)
}

function say(what: string): void {
  const { user, system } = process.cpuUsage()
  console.log(`${what} (${((user + system) / 1_000_000).toFixed(0)} s)`)
}

function described(of: ReviewedPage[]) {
  return of.map(({ page }) => page)
}

/** By page: its fold; all pages of a site are in one. */
function foldsOf(of: ReviewedPage[]): number[] {
  const sites = [...new Set(of.map(({ site }) => site))].sort()
  const foldOf = new Map(sites.map((site) => [site, Math.floor(random() * FOLDS)]))
  return of.map(({ site }) => foldOf.get(site) as number)
}

/** One row a block. Every page counts the same, and in it every word; no block more than a fifth of it. */
function rowsOf(of: ReviewedPage[], table: Table): Weighed {
  const labels = Float32Array.from(of.flatMap((each) => [...each.labels]))
  const weights = of.flatMap(({ page }) => {
    const counts = page.blocks.words.map((words) => Math.max(0.5, words))
    const all = counts.reduce((sum, words) => sum + words, 0)
    return counts.map((words) => Math.min(200, (words / all) * 1_000) + 0.02)
  })
  const fold = Uint8Array.from(table.pages, (index) => folds[index] as number)
  return { table, labels, weights: Float32Array.from(weights), fold }
}

function rowNumbers(table: Table): Int32Array {
  return Int32Array.from({ length: table.rows }, (_, at) => at)
}

/** By row: what trees say of it that have seen no page of its site. */
function outOfFold({ table, labels, weights, fold }: Weighed, growth: Growth): Float64Array {
  const out = new Float64Array(table.rows)
  const all = rowNumbers(table)
  for (let left = 0; left < FOLDS; left++) {
    const learnt = all.filter((row) => fold[row] !== left)
    const others = all.filter((row) => fold[row] === left)
    const sums = new Float64Array(table.rows)
    boost(table, labels, weights, learnt, growth, random, { others, sums })
    for (const row of others) out[row] = logistic(sums[row] as number)
  }
  return out
}

function byPage(values: Float64Array): Float64Array[] {
  let start = 0
  return pages.map(({ page }) => {
    start += page.blocks.size
    return values.subarray(start - page.blocks.size, start)
  })
}

function report(likely: Float64Array[]): void {
  const scores = new Map<string, number[]>()
  for (const [index, { type, page, words, wanted }] of pages.entries()) {
    const taken = takenBlocks(page, likely[index] as Float64Array)
    const score = agreement(
      words.filter((_, at) => taken[at] === 1),
      wanted,
    )
    for (const each of [type, 'all']) scores.set(each, [...(scores.get(each) ?? []), score])
  }
  for (const [type, each] of [...scores].sort())
    console.log(`${type.padEnd(14)} word F1 ${(each.reduce((a, b) => a + b, 0) / each.length).toFixed(4)} out of fold`)
  say('reported')
}

/** F1 of the words in both, each as often as it stands there. */
function agreement(taken: string[][], wanted: string[]): number {
  const left = new Map<string, number>()
  for (const word of wanted) left.set(word, (left.get(word) ?? 0) + 1)
  let common = 0
  let count = 0
  for (const word of taken.flat()) {
    count++
    const of = left.get(word) ?? 0
    if (of === 0) continue
    common++
    left.set(word, of - 1)
  }
  return (2 * common) / Math.max(1, count + wanted.length)
}

function typeRows(of: ReviewedPage[], table: Table, type: PageType): Weighed {
  return {
    table,
    labels: Float32Array.from(of, (page) => Number(page.type === type)),
    weights: new Float32Array(of.length).fill(1),
    fold: Uint8Array.from(folds),
  }
}

/** The share of pages whose likeliest type is theirs. */
function outOfFoldTypes(of: ReviewedPage[]): number {
  const table = pageTable(described(of))
  const likely = pageTypes.map((type) => outOfFold(typeRows(of, table, type), TYPES))
  const right = of.filter(({ type }, index) => {
    const each = likely.map((values) => values[index] as number)
    return pageTypes[each.indexOf(Math.max(...each))] === type
  })
  return right.length / of.length
}

function trainAll(of: ReviewedPage[], { table, labels, weights }: Weighed): StoredModel {
  const ofPages = pageTable(described(of))
  const types = pageTypes.map((type): [PageType, StoredEnsemble] => {
    const rows = typeRows(of, ofPages, type)
    return [type, boost(ofPages, rows.labels, rows.weights, rowNumbers(ofPages), TYPES, random)]
  })
  return {
    blocks: boost(table, labels, weights, rowNumbers(table), BLOCKS, random),
    types: Object.fromEntries(types) as Record<PageType, StoredEnsemble>,
  }
}

function asModule(model: StoredModel): string {
  return [
    "import type { StoredModel } from './look.ts'",
    '',
    '// Made by training/train.ts from reviewed pages; training/README.md says how. Not to be edited.',
    'export const stored: StoredModel = JSON.parse(',
    `  ${quoted(JSON.stringify(model))},`,
    ') as StoredModel',
    '',
  ].join('\n')
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
