import { type Segment, textOf } from './lines.ts'

export interface Sheet {
  /** From 1. */
  number: number
  width: number
  height: number
  segments: Segment[]
}

/** Running heads and page numbers stand within this share of the height from the top or bottom. */
const ZONE = 0.12
/** Lines from the edge of the text that are looked at. */
const OUTER_LINES = 2
const MIN_PAGES = 3
/** Of the pages, at least this share; odd and even ones may differ. */
const MIN_SHARE = 0.3

/** Marks words that stand at the very same height; two pages of them are enough. */
const SAME = '= '

/** Pages without the lines that stand on many of them at the same place: running heads, feet and page numbers. */
export function withoutRepeats(sheets: Sheet[]): Sheet[] {
  if (sheets.length < MIN_PAGES) return sheets
  const outer = sheets.map(outerSegments)
  const seen = new Map<string, number>()
  for (const [at, segments] of outer.entries()) {
    const keys = new Set(segments.flatMap((segment) => keysOf(segment, sheets[at] as Sheet)))
    for (const key of keys) seen.set(key, (seen.get(key) ?? 0) + 1)
  }
  const share = sheets.length * MIN_SHARE
  const isRepeated = (key: string): boolean =>
    (seen.get(key) ?? 0) >= Math.max(key.startsWith(SAME) ? MIN_PAGES - 1 : MIN_PAGES, share)
  return sheets.map((sheet, at) => {
    const own = outer[at] as Segment[]
    const dropped = own.filter((segment) => keysOf(segment, sheet).some(isRepeated))
    if (dropped.length === 0) return sheet
    // what stands beside a page's number is of the running head, though it changes from chapter to chapter
    const lines = new Set(dropped.map(({ baseline }) => Math.round(baseline)))
    const left = new Set(own.filter(({ baseline }) => lines.has(Math.round(baseline))))
    const segments = sheet.segments.filter((segment) => !left.has(segment))
    return segments.length === 0 ? sheet : { ...sheet, segments }
  })
}

function outerSegments({ height, segments }: Sheet): Segment[] {
  const inside = segments.filter(({ baseline }) => baseline >= 0 && baseline <= height)
  const heights = [...new Set(inside.map(({ baseline }) => Math.round(baseline)))].sort((a, b) => b - a)
  const tops = heights.slice(0, OUTER_LINES).filter((baseline) => baseline > height * (1 - ZONE))
  const feet = heights.slice(-OUTER_LINES).filter((baseline) => baseline < height * ZONE)
  const lines = new Set([...tops, ...feet])
  return inside.filter(({ baseline }) => lines.has(Math.round(baseline)))
}

/** What makes a line the same on another page: its words with any number, or a number that counts as the pages do. */
function keysOf(segment: Segment, { number, height }: Sheet): string[] {
  const text = textOf(segment).toLowerCase()
  const place = segment.baseline > height / 2 ? 'top' : 'foot'
  const keys = [`${place} ${text.replace(/\d+|\b[ivxl]+\b/g, '#')}`]
  if (/\p{L}{2}/u.test(text)) keys.push(`${SAME}${place} ${Math.round(segment.baseline)} ${text}`)
  for (const [digits] of text.matchAll(/^\d{1,4}\b|\b\d{1,4}$/g))
    keys.push(`${place} ${Math.round(segment.baseline)} page ${Number(digits) - number}`)
  return keys
}
