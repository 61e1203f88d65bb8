export const median = (values: number[]): number => quantile(values, 0.5)

/** The value below which `share` of the values lie, nearest rank. */
export function quantile(values: number[], share: number): number {
  if (values.length === 0) throw new Error('no values')
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number
}

export const round = (value: number, places = 2): string => value.toFixed(places)

/** Ratios of interleaved pairs: the median pair, and the range, so that a noisy machine can be told. */
export function ratioLine(name: string, ours: number[], theirs: number[]): string {
  const ratios = ours.map((value, at) => value / (theirs[at] as number))
  return `${name.padEnd(58)} ${round(median(ratios))}x  (${round(Math.min(...ratios))}-${round(Math.max(...ratios))}, ${ratios.length} pairs)`
}
