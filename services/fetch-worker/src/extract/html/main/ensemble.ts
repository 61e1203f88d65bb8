/** Boosted trees as they are stored: made by `training/train.ts`. */
export interface StoredEnsemble {
  features: string[]
  /** By feature, ascending: what its values are compared with. */
  edges: number[][]
  /** What a sum of leaves is multiplied with, and begins at. */
  scale: number
  start: number
  /**
   * Base64 of four bytes a node, trees one after the other, each in pre-order: feature (255: a leaf), edge, and the distance
   * to the right child; a leaf's value is a signed 16-bit number in place of the last two.
   */
  nodes: string
}

export interface Ensemble {
  features: readonly string[]
  /** Sum of the trees for the values of one row, in the order of `features`. */
  sum(row: Float32Array): number
}

export const LEAF = 255
export const NODE_BYTES = 4

/** Unpacks an ensemble into columns, so that a row costs one comparison a level and nothing else. */
export function openEnsemble({ features, edges, scale, start, nodes }: StoredEnsemble): Ensemble {
  const bytes = Buffer.from(nodes, 'base64')
  const size = bytes.length / NODE_BYTES
  const feature = new Uint8Array(size)
  /** What is compared with, or a leaf's value. */
  const value = new Float32Array(size)
  const right = new Int32Array(size)
  const roots: number[] = []
  let pending = 0
  for (let node = 0; node < size; node++) {
    if (pending === 0) {
      roots.push(node)
      pending = 1
    }
    const at = node * NODE_BYTES
    feature[node] = bytes[at] as number
    if (feature[node] === LEAF) {
      value[node] = bytes.readInt16LE(at + 2) * scale
      pending--
    } else {
      value[node] = edges[feature[node] as number]?.[bytes[at + 1] as number] as number
      right[node] = node + bytes.readUInt16LE(at + 2)
      pending++
    }
  }
  return {
    features,
    sum(row) {
      let sum = start
      for (const root of roots) {
        let node = root
        for (let of = feature[node] as number; of !== LEAF; of = feature[node] as number)
          node = (row[of] as number) <= (value[node] as number) ? node + 1 : (right[node] as number)
        sum += value[node] as number
      }
      return sum
    },
  }
}

export const logistic = (sum: number): number => 1 / (1 + Math.exp(-sum))
