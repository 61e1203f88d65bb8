import { displayOf, known, TEXT, tagSet } from '../html/tags.ts'
import { attribute, children, type Tree } from '../html/tree.ts'
import { isGutter } from './code.ts'
import { openLine } from './inline.ts'
import { type InlineContext, startInline } from './inline-walk.ts'

const TR = known('tr')
const CAPTION = known('caption')
const BR = known('br')
const isCell = tagSet('td th')
const isRowGroup = tagSet('thead tbody tfoot')
const isDivision = tagSet('p div li dd dt h1 h2 h3 h4 h5 h6 tr table section article blockquote pre figure ul ol')
/** In a cell these say that the table is there to lay the page out. */
const isLayoutSign = tagSet('table h1 h2 h3 article form section nav header footer aside main')

const MAX_COLUMNS = 64
/** Longest text of a cell that still belongs in a row. */
const MAX_CELL_CHARACTERS = 2_000

interface Cell {
  node: number
  colspan: number
  rowspan: number
}

/** The rows of a table that holds data; undefined for one that lays out a page, whose cells are read as blocks. */
export function dataRows(tree: Tree, table: number): Cell[][] | undefined {
  const role = attribute(tree, table, 'role')
  if (role === 'presentation' || role === 'none') return undefined
  const rows: Cell[][] = []
  for (const row of rowsOf(tree, table)) {
    const cells: Cell[] = []
    for (const node of children(tree, row)) {
      if (!isCell[tree.tag[node] ?? TEXT]) continue
      if (cells.length >= MAX_COLUMNS || isLayoutCell(tree, node)) return undefined
      cells.push({ node, colspan: span(tree, node, 'colspan'), rowspan: span(tree, node, 'rowspan') })
    }
    if (cells.length > 0) rows.push(cells)
  }
  return rows.length > 0 && rows.some((cells) => cells.length > 1)
    ? rows
    : isSingleColumn(tree, table, rows)
      ? rows
      : undefined
}

function* rowsOf(tree: Tree, table: number): Generator<number> {
  for (const child of children(tree, table)) {
    const tag = tree.tag[child] ?? TEXT
    if (tag === TR) yield child
    else if (isRowGroup[tag]) for (const row of children(tree, child)) if (tree.tag[row] === TR) yield row
  }
}

/** One column with a heading of its own is still a table. */
const isSingleColumn = (tree: Tree, table: number, rows: Cell[][]): boolean => {
  const end = tree.end[table] ?? 0
  for (let at = table; at < end && rows.length > 0; at++) if (tree.tag[at] === TH) return true
  return false
}
const TH = known('th')

function isLayoutCell(tree: Tree, cell: number): boolean {
  const end = tree.end[cell] ?? 0
  let characters = 0
  for (let at = cell + 1; at < end; at++) {
    const tag = tree.tag[at] ?? TEXT
    if (isLayoutSign[tag] || isGutter(tree, at)) return true
    if (tag === TEXT) characters += (tree.text[at] ?? '').length
  }
  return characters > MAX_CELL_CHARACTERS || isGutter(tree, cell)
}

const span = (tree: Tree, node: number, name: 'colspan' | 'rowspan'): number =>
  Math.min(MAX_COLUMNS, Math.max(1, Number.parseInt(attribute(tree, node, name) ?? '1', 10) || 1))

/** A table in GFM: its first row is the head, since GFM knows no table without one. */
export function renderTable(tree: Tree, rows: Cell[][], context: InlineContext): string {
  const grid: string[][] = []
  /** Cells of earlier rows that reach down into this one, by column. */
  let reaching: number[] = []
  for (const cells of rows) {
    const line: string[] = []
    const next: number[] = []
    const skipReached = () => {
      while ((reaching[line.length] ?? 0) > 0) {
        next[line.length] = (reaching[line.length] ?? 1) - 1
        line.push('')
      }
    }
    for (const cell of cells) {
      skipReached()
      const text = cellText(tree, cell.node, context)
      for (let column = 0; column < cell.colspan && line.length < MAX_COLUMNS; column++) {
        next[line.length] = cell.rowspan - 1
        line.push(column === 0 ? text : '')
      }
    }
    skipReached()
    reaching = next
    if (line.some((text) => text !== '')) grid.push(line)
  }
  const width = Math.max(0, ...grid.map((line) => line.length))
  if (width === 0) return ''
  const [head = [], ...body] = grid.map((line) => [...line, ...Array<string>(width - line.length).fill('')])
  const aligned = alignments(tree, rows[0] ?? [], width)
  return [head, aligned, ...body].map((line) => `| ${line.join(' | ')} |`).join('\n')
}

export function captionOf(tree: Tree, table: number): number | undefined {
  for (const child of children(tree, table)) if (tree.tag[child] === CAPTION) return child
  return undefined
}

function alignments(tree: Tree, cells: Cell[], width: number): string[] {
  const out: string[] = []
  for (const { node, colspan } of cells) {
    const named =
      attribute(tree, node, 'align') ?? /text-align:\s*(\w+)/.exec(attribute(tree, node, 'style') ?? '')?.[1]
    for (let column = 0; column < colspan; column++) {
      out.push(named === 'right' ? '---:' : named === 'center' ? ':---:' : named === 'left' ? ':---' : '---')
    }
  }
  while (out.length < width) out.push('---')
  return out.slice(0, width)
}

/** A cell is one line: where a block ends in it, a slash stands. */
function cellText(tree: Tree, cell: number, context: InlineContext): string {
  const line = openLine(MAX_CELL_CHARACTERS * 2)
  const ends: { at: number; act: () => void }[] = []
  const end = tree.end[cell] ?? 0
  for (let at = cell + 1; at < end; ) {
    while (ends.length > 0 && (ends.at(-1)?.at ?? 0) <= at) ends.pop()?.act()
    const tag = tree.tag[at] ?? TEXT
    if (isDivision[tag]) {
      line.add({ type: 'divide' })
      ends.push({ at: tree.end[at] ?? end, act: () => line.add({ type: 'divide' }) })
      at++
      continue
    }
    if (tag !== BR && displayOf(tag) === 'void' && tag !== IMG) {
      at++
      continue
    }
    const started = startInline(tree, at, line, context)
    if (typeof started === 'function') ends.push({ at: tree.end[at] ?? end, act: started })
    at = started === 'whole' ? (tree.end[at] ?? end) : at + 1
  }
  while (ends.length > 0) ends.pop()?.act()
  return line.take({ inTable: true, isSingle: true })
}
const IMG = known('img')
