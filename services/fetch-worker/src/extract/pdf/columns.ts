import type { Segment } from './lines.ts'

/** Both sides of a gutter have at least this many lines of this many characters that fill this much of their column. */
const MIN_LINES = 3
const MIN_CHARACTERS = 12
const MIN_FILL = 0.5
const MIN_PROSE = 0.6
const MAX_DEPTH = 12
/** What reaches over a gutter by less than this share of the columns beside it belongs to one of them all the same. */
const OVERHANG = 0.15
const STEP = 2
/** Of all segments at most this share lies over a gutter. */
const MAX_COVERING = 0.4
/** Columns that a side of a gutter may hold itself are looked for this deep. */
const MAX_NESTED = 2
/** Places for a gutter that are looked at closely. */
const CANDIDATES = 8

/**
 * The segments of a page in the order they are read, cut into parts that are columns by themselves: what goes over the whole
 * width stays where it is, and between two such lines the left column comes before the right one.
 */
export function toColumns(segments: Segment[], depth = 0): Segment[][] {
  const sorted = [...segments].sort((a, b) => b.baseline - a.baseline)
  const gutter = depth < MAX_DEPTH ? findGutter(sorted) : undefined
  if (!gutter) return segments.length > 0 ? [segments] : []
  const beside = sorted.slice(gutter.from, gutter.to)
  return [
    ...toColumns(sorted.slice(0, gutter.from), depth + 1),
    ...toColumns(
      beside.filter((segment) => isLeft(segment, gutter.x)),
      depth + 1,
    ),
    ...toColumns(
      beside.filter((segment) => !isLeft(segment, gutter.x)),
      depth + 1,
    ),
    ...toColumns(sorted.slice(gutter.to), depth + 1),
  ]
}

/** A place that the segments `from` to `to`, from the top, leave blank. */
interface Gutter {
  x: number
  from: number
  to: number
  /** Characters on the side that has fewer of them. */
  weight: number
}

const isLeft = ({ left, right }: Segment, x: number): boolean => (left + right) / 2 < x

/** The blank strip with most text on both sides of it, when both are columns of prose: cells of a table are not. */
function findGutter(sorted: Segment[], depth = MAX_NESTED): Gutter | undefined {
  if (sorted.length < 2 * MIN_LINES) return undefined
  const left = Math.min(...sorted.map((segment) => segment.left))
  const right = Math.max(...sorted.map((segment) => segment.right))
  const found: Gutter[] = []
  for (const x of placesIn(sorted, left, right)) {
    const best = longestStretch(sorted, x, { left, right })
    if (best) found.push(best)
  }
  found.sort((a, b) => b.weight - a.weight)
  const distinct = found.filter(
    ({ from, to, weight }, at) =>
      at === 0 || found[at - 1]?.from !== from || found[at - 1]?.to !== to || found[at - 1]?.weight !== weight,
  )
  return distinct.slice(0, CANDIDATES).find(({ x, from, to }) => {
    const beside = sorted.slice(from, to)
    return [true, false].every((side) => {
      const own = beside.filter((segment) => isLeft(segment, x) === side)
      return isProse(own) || (depth > 0 && findGutter(own, depth - 1) !== undefined)
    })
  })
}

/** Where a gutter may be: just right of where segments end, unless most others go on there. */
function placesIn(sorted: Segment[], left: number, right: number): number[] {
  const step = Math.max(STEP, (right - left) / 500)
  const [starts, ends] = [new Map<number, number>(), new Map<number, number>()]
  const count = (places: Map<number, number>, at: number) => places.set(at, (places.get(at) ?? 0) + 1)
  for (const segment of sorted) {
    count(starts, Math.round((segment.left - left) / step))
    count(ends, Math.round((segment.right - left) / step))
  }
  const places: number[] = []
  let covering = 0
  for (let at = 0; at * step < right - left; at++) {
    covering += (starts.get(at) ?? 0) - (ends.get(at) ?? 0)
    if (ends.has(at) && covering < MAX_COVERING * sorted.length) places.push(left + (at + 0.5) * step)
  }
  return places
}

/** Of the stretches of lines that leave `x` blank the one with most text on its poorer side. */
function longestStretch(sorted: Segment[], x: number, bounds: { left: number; right: number }): Gutter | undefined {
  let best: Gutter | undefined
  let from = 0
  let [lines, characters] = [
    [0, 0],
    [0, 0],
  ] as [[number, number], [number, number]]
  for (let at = 0; at <= sorted.length; at++) {
    const segment = sorted[at]
    if (segment && !isOver(segment, x, bounds)) {
      const side = isLeft(segment, x) ? 0 : 1
      lines[side]++
      characters[side] += segment.length
      continue
    }
    const weight = Math.min(...lines) < MIN_LINES ? 0 : Math.min(...characters)
    if (weight > (best?.weight ?? 0)) best = { x, from, to: at, weight }
    from = at + 1
    lines = [0, 0]
    characters = [0, 0]
  }
  return best
}

function isOver(segment: Segment, x: number, bounds: { left: number; right: number }): boolean {
  const [before, after] = [x - segment.left, segment.right - x]
  if (before <= 0 || after <= 0) return false
  const [less, more] = [Math.min(before, after), Math.max(before, after)]
  const width = before < after ? x - bounds.left : bounds.right - x
  return less > OVERHANG * width || more < 4 * less
}

/** Most of the text stands in lines that fill their column; formulas and captions among them may be short. */
function isProse(column: Segment[]): boolean {
  const left = Math.min(...column.map((segment) => segment.left))
  const right = Math.max(...column.map((segment) => segment.right))
  const characters = (segments: Segment[]): number => segments.reduce((sum, { length }) => sum + length, 0)
  const filling = column.filter(
    (segment) => segment.length >= MIN_CHARACTERS && segment.right - segment.left >= MIN_FILL * (right - left),
  )
  return filling.length >= MIN_LINES && characters(filling) >= MIN_PROSE * characters(column)
}
