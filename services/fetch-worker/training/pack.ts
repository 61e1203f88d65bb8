import { LEAF, NODE_BYTES, type StoredEnsemble } from '../src/extract/html/main/ensemble.ts'
import type { Table } from './bins.ts'

/** A tree as it is grown; a leaf has neither a left nor a right part. */
export interface TreeNode {
  feature: number
  bin: number
  left: TreeNode | undefined
  right: TreeNode | undefined
  value: number
}

/** The trees as `openEnsemble` takes them, with the features they ask for and no others. */
export function packed(table: Table, trees: TreeNode[], start: number): StoredEnsemble {
  const nodes: TreeNode[] = []
  const rights = new Map<TreeNode, number>()
  const list = (node: TreeNode): void => {
    const at = nodes.push(node) - 1
    if (!node.left || !node.right) return
    list(node.left)
    rights.set(node, nodes.length - at)
    list(node.right)
  }
  for (const tree of trees) list(tree)
  const used = [...new Set(nodes.filter(({ left }) => left).map(({ feature }) => feature))].sort((a, b) => a - b)
  if (used.length >= LEAF) throw new Error(`${used.length} features are used; a node can name ${LEAF}`)
  const largest = Math.max(...nodes.filter(({ left }) => !left).map(({ value }) => Math.abs(value)))
  const scale = Number((largest / 32_000).toPrecision(6))
  const bytes = Buffer.alloc(nodes.length * NODE_BYTES)
  for (const [index, node] of nodes.entries()) {
    const at = index * NODE_BYTES
    bytes[at] = node.left ? used.indexOf(node.feature) : LEAF
    if (node.left) {
      bytes[at + 1] = node.bin
      bytes.writeUInt16LE(rights.get(node) as number, at + 2)
    } else bytes.writeInt16LE(Math.round(node.value / scale), at + 2)
  }
  return {
    features: used.map((at) => table.names[at] as string),
    edges: used.map((at) => table.edges[at] as number[]),
    scale,
    start: Number(start.toPrecision(6)),
    nodes: bytes.toString('base64'),
  }
}
