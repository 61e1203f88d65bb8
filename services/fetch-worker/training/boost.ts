import { LEAF, type StoredEnsemble } from '../src/extract/html/main/ensemble.ts'
import { MAX_EDGES, type Table } from './bins.ts'
import { packed, type TreeNode } from './pack.ts'

const BINS = MAX_EDGES + 1

export interface Growth {
  trees: number
  leaves: number
  rate: number
  /** Shares of the features and pages that each tree sees: rows of one page are too alike to be drawn one by one. */
  featureShare: number
  pageShare: number
  /** Least weight of rows in a leaf, and what is added to it so that small leaves say little. */
  leafWeight: number
  damping: number
}

/** What else is wanted of the trees than themselves. */
export interface Takers {
  /** Takes what the trees say of each row, also of `others`, which they are not grown on. */
  sums?: Float64Array
  others?: Int32Array
}

interface Split {
  gain: number
  feature: number
  bin: number
}

interface Leaf {
  node: TreeNode
  rows: Int32Array
  sums: Float64Array
  gradient: number
  weight: number
  split: Split | undefined
}

/**
 * Gradient boosting of trees for a label between 0 and 1 (logistic loss), each tree grown leaf by leaf where that gains
 * most.
 */
export function boost(
  table: Table,
  labels: Float32Array,
  weights: Float32Array,
  rows: Int32Array,
  growth: Growth,
  random: () => number,
  { others = new Int32Array(), sums = new Float64Array(table.rows) }: Takers = {},
): StoredEnsemble {
  /** By row: how the loss changes with its sum, and how that change does. */
  const slopes = new Float64Array(table.rows * 2)
  let wanted = 0
  let all = 0
  for (const row of rows) {
    wanted += (labels[row] as number) * (weights[row] as number)
    all += weights[row] as number
  }
  const start = Math.log((wanted + 1e-6) / (all - wanted + 1e-6))
  sums.fill(start)
  const pages = table.pages.reduce((most, page) => Math.max(most, page), 0) + 1
  const trees: TreeNode[] = []
  for (let index = 0; index < growth.trees; index++) {
    for (const row of rows) {
      const likely = 1 / (1 + Math.exp(-(sums[row] as number)))
      const weight = weights[row] as number
      slopes[row * 2] = weight * (likely - (labels[row] as number))
      slopes[row * 2 + 1] = weight * likely * (1 - likely)
    }
    const drawn = Uint8Array.from({ length: pages }, () => Number(random() < growth.pageShare))
    const seen = rows.filter((row) => drawn[table.pages[row] as number] === 1)
    const features = table.names.map((_, at) => at).filter(() => random() < growth.featureShare)
    const tree = grow(table, features, seen, slopes, growth)
    addValues(tree, table, rows, sums)
    addValues(tree, table, others, sums)
    trees.push(tree)
  }
  return packed(table, trees, start)
}

function grow(table: Table, features: number[], rows: Int32Array, slopes: Float64Array, growth: Growth): TreeNode {
  const leafOf = (part: Int32Array, sums: Float64Array | undefined): Leaf => {
    let gradient = 0
    let weight = 0
    for (const row of part) {
      gradient += slopes[row * 2] as number
      weight += slopes[row * 2 + 1] as number
    }
    const leaf: Leaf = {
      node: { feature: LEAF, bin: 0, left: undefined, right: undefined, value: 0 },
      rows: part,
      sums: sums ?? summed(table, features, part, slopes),
      gradient,
      weight,
      split: undefined,
    }
    leaf.node.value = (-growth.rate * gradient) / (weight + growth.damping)
    leaf.split = bestSplit(leaf, features, growth)
    return leaf
  }
  const root = leafOf(rows, undefined)
  const leaves = [root]
  while (leaves.length < growth.leaves) {
    const leaf = leaves.reduce((best, each) => ((each.split?.gain ?? 0) > (best.split?.gain ?? 0) ? each : best))
    const { split } = leaf
    if (!split) break
    const column = table.columns[split.feature] as Uint8Array
    const { left, right } = parted(leaf.rows, column, split.bin)
    // Sums of the larger part are those of both without those of the smaller.
    const smaller = left.length < right.length ? left : right
    const counted = summed(table, features, smaller, slopes)
    const rest = leaf.sums.map((sum, at) => sum - (counted[at] as number))
    const leftLeaf = leafOf(left, smaller === left ? counted : rest)
    const rightLeaf = leafOf(right, smaller === left ? rest : counted)
    Object.assign(leaf.node, { feature: split.feature, bin: split.bin, left: leftLeaf.node, right: rightLeaf.node })
    leaves.splice(leaves.indexOf(leaf), 1, leftLeaf, rightLeaf)
  }
  return root.node
}

function summed(table: Table, features: number[], rows: Int32Array, slopes: Float64Array): Float64Array {
  const out = new Float64Array(features.length * BINS * 2)
  for (let index = 0; index < features.length; index++) {
    const column = table.columns[features[index] as number] as Uint8Array
    const base = index * BINS * 2
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at] as number
      const cell = base + (column[row] as number) * 2
      out[cell] = (out[cell] as number) + (slopes[row * 2] as number)
      out[cell + 1] = (out[cell + 1] as number) + (slopes[row * 2 + 1] as number)
    }
  }
  return out
}

function bestSplit(leaf: Leaf, features: number[], { leafWeight, damping }: Growth): Split | undefined {
  const whole = leaf.gradient ** 2 / (leaf.weight + damping)
  let best: Split | undefined
  for (let index = 0; index < features.length; index++) {
    const base = index * BINS * 2
    let gradient = 0
    let weight = 0
    for (let bin = 0; bin < MAX_EDGES; bin++) {
      gradient += leaf.sums[base + bin * 2] as number
      weight += leaf.sums[base + bin * 2 + 1] as number
      if (weight < leafWeight) continue
      if (leaf.weight - weight < leafWeight) break
      const gain =
        gradient ** 2 / (weight + damping) + (leaf.gradient - gradient) ** 2 / (leaf.weight - weight + damping) - whole
      if (gain > (best?.gain ?? 1e-6)) best = { gain, feature: features[index] as number, bin }
    }
  }
  return best
}

function parted(rows: Int32Array, column: Uint8Array, bin: number): { left: Int32Array; right: Int32Array } {
  const out = new Int32Array(rows.length)
  let low = 0
  let high = rows.length
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at] as number
    if ((column[row] as number) <= bin) out[low++] = row
    else out[--high] = row
  }
  return { left: out.subarray(0, low), right: out.subarray(low).reverse() }
}

/** Adds to each row's sum what the tree says of it: the rows go down the tree together, so that each column is read once. */
function addValues(tree: TreeNode, table: Table, rows: Int32Array, sums: Float64Array): void {
  const parts = [{ node: tree, rows }]
  for (let part = parts.pop(); part; part = parts.pop()) {
    const { node } = part
    if (node.left && node.right) {
      const { left, right } = parted(part.rows, table.columns[node.feature] as Uint8Array, node.bin)
      parts.push({ node: node.left, rows: left }, { node: node.right, rows: right })
    } else for (const row of part.rows) sums[row] = (sums[row] as number) + node.value
  }
}

/** Numbers that look random and are the same in every run. */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
