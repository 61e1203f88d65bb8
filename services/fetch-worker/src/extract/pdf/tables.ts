import type { Line } from './blocks.ts'
import type { Segment, Span } from './lines.ts'
import { textOf } from './lines.ts'

export interface Table {
  /** Lines it takes. */
  lines: number
  rows: Span[][][]
  /** Every cell is of one column for certain; else only the rows are. */
  isGrid: boolean
}

const MAX_ROWS = 400
/** Lines further apart than this many usual distances are not of one table. */
const ROW_GAP = 2.6
const MIN_GRID_ROWS = 3
const MIN_FILLED = 0.5

interface Stripe {
  left: number
  right: number
}

/** A table that begins at a line: lines of several parts each, the parts under each other. */
export function findTable(lines: Line[], at: number, leading: number): Table | undefined {
  const [first, second] = [lines[at], lines[at + 1]]
  if (!first || first.segments.length < 2 || !second || first.isMono) return undefined
  let end = at + 1
  while (end < lines.length && end - at < MAX_ROWS && goesOn(lines, at, end, leading)) end++
  // what hangs under the last row's first column may as well be the text that follows
  while (end > at + 1 && (lines[end - 1] as Line).segments.length === 1 && !isContinuation(lines, end - 1)) end--
  const own = lines.slice(at, end)
  const rows = own.filter(({ segments }) => segments.length > 1)
  if (rows.length < 2) return undefined
  const stripes = toStripes(own)
  const grid = stripes && toGrid(own, stripes, leading)
  if (grid && grid.length >= MIN_GRID_ROWS && filled(grid) >= MIN_FILLED)
    return { lines: own.length, rows: grid, isGrid: true }
  return { lines: own.length, rows: own.map(({ segments }) => segments.map(({ spans }) => spans)), isGrid: false }
}

function goesOn(lines: Line[], start: number, at: number, leading: number): boolean {
  const [line, before] = [lines[at] as Line, lines[at - 1] as Line]
  const gap = before.baseline - line.baseline
  if (gap > ROW_GAP * Math.max(leading, line.size) || Math.abs(line.size - before.size) > 0.25 * before.size)
    return false
  if (line.segments.length > 1) return true
  // one part alone: the rest of a cell, when it stands within one column of the rows so far and the table goes on
  return isContinuation(lines, at) && at > start
}

/** Stands under one part of the row above it, and not under its beginning alone. */
function isContinuation(lines: Line[], at: number): boolean {
  const [only] = (lines[at] as Line).segments
  for (let above = at - 1; above >= 0 && only; above--) {
    const { segments } = lines[above] as Line
    if (segments.length < 2) continue
    const touched = segments.filter((segment) => segment.left < only.right && segment.right > only.left)
    const [host] = touched
    return touched.length === 1 && host !== segments[0] && Math.abs((host as Segment).left - only.left) < 2 * only.size
  }
  return false
}

/** The columns' extents, from the lines that have most parts; undefined when these do not agree. */
function toStripes(lines: Line[]): Stripe[] | undefined {
  const counts = new Map<number, number>()
  for (const { segments } of lines)
    if (segments.length > 1) counts.set(segments.length, (counts.get(segments.length) ?? 0) + 1)
  const [usual] = [...counts].sort((a, b) => b[1] - a[1] || b[0] - a[0])[0] ?? []
  if (usual === undefined) return undefined
  const stripes: Stripe[] = Array.from({ length: usual }, () => ({
    left: Number.POSITIVE_INFINITY,
    right: Number.NEGATIVE_INFINITY,
  }))
  for (const { segments } of lines) {
    if (segments.length !== usual) continue
    for (const [at, { left, right }] of segments.entries()) {
      const stripe = stripes[at] as Stripe
      stripe.left = Math.min(stripe.left, left)
      stripe.right = Math.max(stripe.right, right)
    }
  }
  const apart = stripes.every((stripe, at) => at === 0 || stripe.left > (stripes[at - 1] as Stripe).right)
  return apart ? stripes : undefined
}

/** The lines as rows of cells, the rest of a cell with its beginning; undefined when a part is of no one column. */
function toGrid(lines: Line[], stripes: Stripe[], leading: number): Span[][][] | undefined {
  const rows: Span[][][] = []
  let before: Line | undefined
  for (const line of lines) {
    const cells: Span[][] = stripes.map(() => [])
    for (const segment of line.segments) {
      const at = stripes.findIndex(({ left, right }) => segment.left < right && segment.right > left)
      const last = stripes.findLastIndex(({ left, right }) => segment.left < right && segment.right > left)
      if (at < 0 || at !== last || cells[at]?.length) return undefined
      cells[at] = segment.spans
    }
    const row = rows.at(-1)
    const isRest =
      row !== undefined &&
      before !== undefined &&
      cells[0]?.length === 0 &&
      before.baseline - line.baseline <= 1.15 * Math.max(leading, line.size)
    if (isRest) for (const [at, cell] of cells.entries()) appendCell(row, at, cell)
    else rows.push(cells)
    before = line
  }
  return rows
}

function appendCell(row: Span[][], at: number, cell: Span[]): void {
  if (cell.length === 0) return
  const own = row[at] ?? []
  row[at] = own.length === 0 ? cell : [...own, { text: ' ' }, ...cell]
}

const filled = (rows: Span[][][]): number => {
  const cells = rows.flat()
  return cells.filter((cell) => textOf({ spans: cell }).trim() !== '').length / Math.max(1, cells.length)
}
