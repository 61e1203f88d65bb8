/** Values of one feature as the number of edges below them; a table of such columns is what trees are grown on. */
export interface Table {
  names: string[]
  edges: number[][]
  columns: Uint8Array[]
  rows: number
  /** By row: the page it is of. */
  pages: Int32Array
}

export const MAX_EDGES = 63

/** Edges between the values of a feature so that about as many rows lie between any two of them. */
export function binned(values: Float32Array): { edges: number[]; column: Uint8Array } {
  const sorted = values.toSorted()
  const edges: number[] = []
  const distinct = new Set<number>()
  for (let at = 0; at < sorted.length && distinct.size <= MAX_EDGES + 1; at++) distinct.add(sorted[at] as number)
  if (distinct.size <= MAX_EDGES + 1) {
    const all = [...distinct]
    for (let at = 1; at < all.length; at++) edges.push(((all[at - 1] as number) + (all[at] as number)) / 2)
  } else {
    for (let at = 1; at <= MAX_EDGES; at++) {
      const edge = sorted[Math.floor((at * sorted.length) / (MAX_EDGES + 1))] as number
      if (edges.length === 0 || edge > (edges.at(-1) as number)) edges.push(edge)
    }
  }
  const rounded = edges.map((edge) => Number(Math.fround(edge).toPrecision(6)))
  return { edges: rounded, column: Uint8Array.from(values, (value) => binOf(rounded, value)) }
}

function binOf(edges: readonly number[], value: number): number {
  let low = 0
  let high = edges.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (value <= Math.fround(edges[middle] as number)) high = middle
    else low = middle + 1
  }
  return low
}
