import { joinLines, type Vocabulary } from './hyphens.ts'
import { type Segment, type Span, textOf } from './lines.ts'
import { findTable } from './tables.ts'

/**
 * One part of a document: what is a heading is told later, when all sizes are known. An open one ends with a full line, and may
 * go on in the next column.
 */
export type Block =
  | { type: 'text'; spans: Span[]; size: number; isBold: boolean; isOpen: boolean }
  | { type: 'item'; marker: string; left: number; depth: number; spans: Span[]; size: number; isOpen: boolean }
  | { type: 'code'; lines: string[]; size: number }
  | { type: 'table'; rows: Span[][][]; isGrid: boolean; size: number }

/** What stands on one line of a column. */
export interface Line {
  segments: Segment[]
  left: number
  right: number
  baseline: number
  size: number
  isBold: boolean
  isMono: boolean
}

/** Lines further apart than this many times the column's usual distance belong to different paragraphs. */
const PARAGRAPH_GAP = 1.35
const MAX_DEPTH = 4
const BULLET = /^(?:[•‣◦▪▫■□●○◆◇►▶➢➤✓✔❖∙·–—*-])(?=\s|$)/u
const NUMBER = /^(?:\d{1,3}[.)]|\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})\)|\[\d{1,3}\])(?=\s)/i

export function toLines(segments: Segment[]): Line[] {
  const lines: Line[] = []
  for (const segment of [...segments].sort((a, b) => b.baseline - a.baseline)) {
    const line = lines.at(-1)
    if (line && line.baseline - segment.baseline < 0.35 * Math.min(line.size, segment.size)) {
      line.segments.push(segment)
      continue
    }
    lines.push({ ...segment, segments: [segment] })
  }
  for (const line of lines) {
    line.segments.sort((a, b) => a.left - b.left)
    line.left = Math.min(...line.segments.map(({ left }) => left))
    line.right = Math.max(...line.segments.map(({ right }) => right))
    line.size = line.segments.reduce((most, each) => (each.length > most.length ? each : most)).size
    line.isBold = line.segments.every(({ isBold }) => isBold)
    line.isMono = line.segments.every(({ isMono }) => isMono)
  }
  return lines
}

/** A column's lines as paragraphs, list items, tables and code. */
export function toBlocks(segments: Segment[], words: Vocabulary): Block[] {
  const lines = toLines(segments)
  const column = measure(lines)
  const blocks: Block[] = []
  let open: Line[] = []
  const close = () => {
    const block = open.length > 0 ? toBlock(open, column, words) : undefined
    if (block) blocks.push(block)
    open = []
  }
  for (let at = 0; at < lines.length; at++) {
    const table = findTable(lines, at, column.leading)
    if (table) {
      close()
      blocks.push({ type: 'table', rows: table.rows, isGrid: table.isGrid, size: (lines[at] as Line).size })
      at += table.lines - 1
      continue
    }
    const line = lines[at] as Line
    if (open.length > 0 && startsBlock(open, line, column)) close()
    open.push(line)
  }
  close()
  return withDepths(blocks)
}

/** How deep each item lies, by how far it is indented from those it follows. */
function withDepths(blocks: Block[]): Block[] {
  let outer: number[] = []
  return blocks.map((block) => {
    if (block.type !== 'item') {
      if (block.type !== 'text' || block.isBold) outer = []
      return block
    }
    outer = outer.filter((left) => left < block.left - 0.5 * block.size)
    const depth = Math.min(MAX_DEPTH, outer.length)
    outer.push(block.left)
    return { ...block, depth }
  })
}

interface Column {
  left: number
  right: number
  /** Usual distance of two lines. */
  leading: number
}

function measure(lines: Line[]): Column {
  const gaps = lines
    .slice(1)
    .map((line, at) => (lines[at] as Line).baseline - line.baseline)
    .sort((a, b) => a - b)
  const leading = gaps[Math.floor(gaps.length * 0.4)] ?? 0
  const rights = lines.map(({ right }) => right).sort((a, b) => a - b)
  return {
    left: Math.min(...lines.map(({ left }) => left)),
    // a line now and then sticks out
    right: rights[Math.floor(0.9 * (rights.length - 1))] ?? 0,
    leading,
  }
}

function startsBlock(open: Line[], line: Line, column: Column): boolean {
  const before = open.at(-1) as Line
  const [first] = open as [Line]
  const gap = before.baseline - line.baseline
  const usual = Math.min(column.leading, 1.6 * line.size) || 1.2 * line.size
  if (gap > PARAGRAPH_GAP * Math.max(usual, line.size) || gap < 0) return true
  if (Math.abs(before.size - line.size) > 0.08 * before.size) return true
  if (
    before.isMono !== line.isMono ||
    (before.isBold && !line.isBold) ||
    (!before.isBold && line.isBold && endsEarly(before, line, column))
  )
    return true
  if (line.isMono) return false
  const text = lineText(line)
  if (isMarked(text) && (line.left <= first.left + 0.5 * line.size || isMarked(lineText(first)))) return true
  if (isMarked(lineText(first))) return line.left < first.left + 0.3 * line.size && endsEarly(before, line, column)
  const isIndented = line.left > before.left + 0.7 * line.size && open.length > 1
  return isIndented || (endsEarly(before, line, column) && endsSentence(lineText(before)))
}

const isMarked = (text: string): boolean => BULLET.test(text) || NUMBER.test(text)
const endsSentence = (text: string): boolean => /[.!?:;。！？]["”’)\]]*$/.test(text)
export const lineText = (line: Line): string => line.segments.map(textOf).join(' ')

/** A line that ends by chance lacks less than this share of its column. */
const EARLY_SHARE = 0.08

/** The next line's first word would have had room: whoever broke the line meant it. */
function endsEarly(line: Line, next: Line, column: Column): boolean {
  const text = lineText(next)
  const word = text.split(' ')[0] ?? ''
  const width = ((next.right - next.left) * (word.length + 1)) / Math.max(1, text.length)
  return line.right + Math.max(width, EARLY_SHARE * (column.right - column.left)) < column.right - 0.2 * line.size
}

/** A gap in a line of text is no more than a blank up to this many font sizes. */
const BLANK_GAP = 2
/** Columns of fewer characters than this break their lines where they mean to. */
const MIN_MEASURE = 22

function toBlock(lines: Line[], column: Column, words: Vocabulary): Block | undefined {
  const [first] = lines as [Line]
  const { size } = first
  if (lines.every(({ isMono }) => isMono)) return { type: 'code', lines: toCode(lines), size }
  const texts = lines.map((line) =>
    line.segments.flatMap(({ spans, left }, at): Span[] => {
      const before = line.segments[at - 1]
      return before ? [{ text: left - before.right < BLANK_GAP * line.size ? ' ' : '\t' }, ...spans] : spans
    }),
  )
  const isNarrow = (column.right - column.left) / (0.5 * size) < MIN_MEASURE
  const breaks = lines.map((line, at) => {
    const next = lines[at + 1]
    return next !== undefined && (isNarrow || endsEarly(line, next, column))
  })
  const spans = joinLines(texts, breaks, words)
  const [lead] = spans
  if (!lead) return undefined
  const isOpen = !isNarrow && (lines.at(-1) as Line).right > column.right - 0.2 * (column.right - column.left)
  const isBold = lines.every((line) => line.isBold)
  const marker = (BULLET.exec(lead.text) ?? (isBold ? null : NUMBER.exec(lead.text)))?.[0]
  if (marker !== undefined && lead.text.trim() !== marker) {
    const rest = [{ ...lead, text: lead.text.slice(marker.length).trimStart() }, ...spans.slice(1)]
    return { type: 'item', marker, left: first.left, depth: 0, spans: rest, size, isOpen }
  }
  return { type: 'text', spans, size, isBold, isOpen }
}

/** Text in a fixed pitch keeps its lines, and what they are indented by. */
function toCode(lines: Line[]): string[] {
  const widths = lines
    .map((line) => (line.right - line.left) / Math.max(1, lineText(line).length))
    .sort((a, b) => a - b)
  const pitch = Math.max(1, widths[Math.floor(widths.length / 2)] ?? 1)
  const margin = Math.min(...lines.map(({ left }) => left))
  return lines.map((line) => {
    let out = ''
    for (const segment of line.segments) {
      const at = Math.round((segment.left - margin) / pitch)
      out += ' '.repeat(Math.min(200, Math.max(out === '' ? 0 : 1, at - out.length))) + textOf(segment)
    }
    return out
  })
}
