import type { TextRun } from './page.ts'

/** Quarter turns, counter-clockwise, of the direction a text is written in. */
export type Quadrant = 0 | 1 | 2 | 3

export interface Box {
  left: number
  bottom: number
  right: number
  top: number
}

/** The direction of a text's matrix; undefined for what is tilted: stamps and watermarks across a page. */
export function quadrantOf(a: number, b: number): Quadrant | undefined {
  const quarters = Math.atan2(b, a) / (Math.PI / 2)
  const nearest = Math.round(quarters)
  return Math.abs(quarters - nearest) > 0.1 ? undefined : (((nearest + 4) % 4) as Quadrant)
}

/** Where a character stands when the page is turned so that its line is level. */
export function turn(quadrant: Quadrant, box: Box, x: number, y: number): Pick<TextRun, 'left' | 'right' | 'baseline'> {
  switch (quadrant) {
    case 0:
      return { left: box.left, right: box.right, baseline: y }
    case 1:
      return { left: box.bottom, right: box.top, baseline: -x }
    case 2:
      return { left: -box.right, right: -box.left, baseline: -y }
    case 3:
      return { left: -box.top, right: -box.bottom, baseline: x }
    default:
      return quadrant satisfies never
  }
}

type Turned = TextRun & { quadrant: Quadrant }

/** The page with its main direction level, whatever its `/Rotate` says; what is written in another direction comes below it. */
export function upright(pieces: Turned[], width: number, height: number) {
  const weight = [0, 0, 0, 0]
  for (const { quadrant, text } of pieces) weight[quadrant] = (weight[quadrant] ?? 0) + text.length
  const main = weight.indexOf(Math.max(...weight)) as Quadrant
  const size = frame(main, width, height)
  const order = [main, ...([0, 1, 2, 3] as Quadrant[]).filter((quadrant) => quadrant !== main)]
  let below = 0
  const runs: TextRun[] = []
  for (const quadrant of order) {
    const { width: across, height: up } = frame(quadrant, width, height)
    const [dx, dy] = [
      [0, 0],
      [0, up],
      [across, up],
      [across, 0],
    ][quadrant] as [number, number]
    let used = false
    for (const { quadrant: own, ...run } of pieces) {
      if (own !== quadrant) continue
      used = true
      runs.push({ ...run, left: run.left + dx, right: run.right + dx, baseline: run.baseline + dy - below })
    }
    if (used) below += up + 2 * Math.max(width, height)
  }
  return { ...size, runs }
}

const frame = (quadrant: Quadrant, width: number, height: number) =>
  quadrant % 2 === 0 ? { width, height } : { width: height, height: width }
