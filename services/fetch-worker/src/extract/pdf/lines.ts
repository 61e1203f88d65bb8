import type { TextRun } from './page.ts'

/** Words and links that stand together on one line, as they are read. */
export interface Span {
  text: string
  link?: string
}

/** What stands on one line without a wide gap in it. */
export interface Segment {
  spans: Span[]
  /** Of its text. */
  length: number
  left: number
  right: number
  baseline: number
  size: number
  /** All of it. */
  isBold: boolean
  isMono: boolean
}

/** Runs this far apart on one line, in font sizes, are of different columns or cells. */
const SEGMENT_GAP = 0.95
/** A smaller gap than this, in font sizes, is within a word. */
const WORD_GAP = 0.14

export const textOf = ({ spans }: { spans: Span[] }): string => spans.map(({ text }) => text).join('')

/** Puts runs that touch on one line together, small raised and lowered ones with the word they belong to. */
export function toSegments(runs: TextRun[]): Segment[] {
  return toRows(runs).flatMap(cut)
}

/** Runs by line, from the top. */
function toRows(runs: TextRun[]): TextRun[][] {
  const sorted = runs.filter(({ size }) => size > 0).sort((a, b) => b.baseline - a.baseline || a.left - b.left)
  const rows: TextRun[][] = []
  let row: TextRun[] = []
  for (const run of sorted) {
    const [first] = row
    if (first && first.baseline - run.baseline > 0.2 * Math.min(first.size, run.size)) {
      rows.push(row)
      row = []
    }
    row.push(run)
  }
  if (row.length > 0) rows.push(row)
  return joinScripts(rows)
}

/** An index or exponent is a line of its own by its baseline: it goes to the line beside it. */
function joinScripts(rows: TextRun[][]): TextRun[][] {
  for (const [at, row] of rows.entries()) {
    // beside a second column the line above or below may be that column's
    for (const distance of [1, -1, 2, -2, 3, -3]) {
      const neighbour = rows[at + distance]
      if (!neighbour || neighbour.length === 0) continue
      const [host] = neighbour
      if (!host) continue
      const kept: TextRun[] = []
      for (const run of row) {
        const touching = neighbour.find((other) => belongsTo(run, other))
        if (touching) neighbour.push({ ...run, baseline: touching.baseline })
        else kept.push(run)
      }
      row.splice(0, row.length, ...kept)
    }
  }
  return rows.filter((row) => row.length > 0)
}

function belongsTo(script: TextRun, base: TextRun): boolean {
  const rise = script.baseline - base.baseline
  // a letter of a logo that is set a little lower or higher, or a small one
  const isLetter = script.text.trim().length <= 2 && Math.abs(rise) < 0.4 * base.size
  if (!isLetter && script.size > 0.85 * base.size) return false
  if (rise < -0.4 * base.size || rise > 0.7 * base.size) return false
  return Math.min(Math.abs(script.left - base.right), Math.abs(base.left - script.right)) < 0.3 * base.size
}

/** One line's runs, cut at its wide gaps. */
function cut(row: TextRun[]): Segment[] {
  row.sort((a, b) => a.left - b.left)
  const groups: TextRun[][] = []
  let end = Number.NEGATIVE_INFINITY
  for (const run of row) {
    const group = groups.at(-1)
    if (group && run.left - end < SEGMENT_GAP * run.size) group.push(run)
    else groups.push([run])
    end = Math.max(group && groups.at(-1) === group ? end : run.right, run.right)
  }
  return groups.map(toSegment)
}

function toSegment(runs: TextRun[]): Segment {
  const left = Math.min(...runs.map((run) => run.left))
  const right = Math.max(...runs.map((run) => run.right))
  const weight = (pick: (run: TextRun) => boolean) =>
    runs.reduce((sum, run) => sum + (pick(run) ? run.text.length : 0), 0)
  const main = runs.reduce((best, run) => (run.text.length > best.text.length ? run : best))
  if (weight((run) => run.isRtl) * 2 > weight(() => true)) runs.reverse()
  const spans = toSpans(runs)
  return {
    spans,
    length: spans.reduce((sum, { text }) => sum + text.length, 0),
    left,
    right,
    baseline: main.baseline,
    size: main.size,
    isBold: runs.every((run) => run.isBold || !/[\p{L}\p{N}]/u.test(run.text)) && runs.some((run) => run.isBold),
    isMono: runs.every((run) => run.isMono),
  }
}

function toSpans(runs: TextRun[]): Span[] {
  const spans: Span[] = []
  let before: TextRun | undefined
  for (const run of runs) {
    const gap = before ? Math.max(run.left - before.right, before.left - run.right) : 0
    const isApart = before !== undefined && gap > WORD_GAP * Math.max(run.size, before.size)
    const last = spans.at(-1)
    if (isApart && last && !/\s$/.test(last.text) && !/^\s/.test(run.text)) last.text += ' '
    if (last && last.link === run.link) last.text += run.text
    else spans.push({ text: run.text, ...(run.link === undefined ? {} : { link: run.link }) })
    before = run
  }
  return trimmed(spans)
}

/** Blanks are one each and stand outside links; leaders of a table of contents are three dots. */
export function trimmed(spans: Span[]): Span[] {
  const out: Span[] = []
  let blank = true
  for (const { text, link } of spans) {
    const plain = text.replace(/(?:\s?\.){5,}/g, ' ... ').replace(/\s+/g, ' ')
    const [lead, body, trail] = [/^ /.test(plain), plain.trim(), / $/.test(plain)]
    if (body === '') {
      if (!blank) pushText(out, ' ')
      blank = blank || plain !== ''
      continue
    }
    if (lead && !blank) pushText(out, ' ')
    if (link === undefined) pushText(out, body)
    else out.push({ text: body, link })
    if (trail) pushText(out, ' ')
    blank = trail
  }
  const last = out.at(-1)
  if (last) last.text = last.text.trimEnd()
  return out.filter(({ text }) => text !== '')
}

function pushText(out: Span[], text: string): void {
  const last = out.at(-1)
  if (last && last.link === undefined) last.text += text
  else out.push({ text })
}
