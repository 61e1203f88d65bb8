import { blockFeatures, type Described, type Feature } from '../src/extract/html/main/block-features.ts'
import { binned, type Table } from './bins.ts'

/** What is known of all blocks of all pages, one row a block, as far as a name is in `only`. */
export function blockTable(pages: readonly Described[], only?: ReadonlySet<string>): Table {
  const ofPages = Object.keys(pages[0]?.features ?? {}).map((name): [string, Feature] => [
    name,
    ({ features }) => features[name] as number,
  ])
  const sizes = pages.map(({ blocks }) => blocks.size)
  const rows = sizes.reduce((sum, size) => sum + size, 0)
  return tableOf(
    [...blockFeatures, ...ofPages],
    only,
    rows,
    (feature) => {
      const values = new Float32Array(rows)
      let row = 0
      for (const page of pages) for (let at = 0; at < page.blocks.size; at++) values[row++] = feature(page, at)
      return values
    },
    Int32Array.from(pages.flatMap((_, index) => Array<number>(sizes[index] as number).fill(index))),
  )
}

/** What is known of pages, one row a page. */
export function pageTable(pages: readonly Described[]): Table {
  const names = Object.keys(pages[0]?.features ?? {})
  const features = names.map((name): [string, Feature] => [name, (page) => page.features[name] as number])
  const rows = Int32Array.from(pages, (_, index) => index)
  return tableOf(
    features,
    undefined,
    pages.length,
    (feature) => Float32Array.from(pages, (page) => feature(page, 0)),
    rows,
  )
}

function tableOf(
  features: [string, Feature][],
  only: ReadonlySet<string> | undefined,
  rows: number,
  valuesOf: (feature: Feature) => Float32Array,
  pages: Int32Array,
): Table {
  const table: Table = { names: [], edges: [], columns: [], rows, pages }
  for (const [name, feature] of features) {
    if (only && !only.has(name)) continue
    const { edges, column } = binned(valuesOf(feature))
    if (edges.length === 0) continue
    table.names.push(name)
    table.edges.push(edges)
    table.columns.push(column)
  }
  return table
}
