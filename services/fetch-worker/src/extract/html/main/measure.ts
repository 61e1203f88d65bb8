import { TEXT } from '../tags.ts'
import type { Tree } from '../tree.ts'
import type { Blocks } from './blocks.ts'
import { notOfThePage } from './places.ts'

export function sumUp(tree: Tree, blocks: Blocks, place: Int32Array, hidden: Uint8Array) {
  const words = new Float64Array(tree.size)
  const linkCharacters = new Float64Array(tree.size)
  const characters = new Float64Array(tree.size)
  const blockCount = new Float64Array(tree.size)
  const running = new Float64Array(tree.size)
  const wordsBefore = new Float64Array(blocks.size)
  const runningBefore = new Float64Array(blocks.size)
  let allWords = 0
  let allRunning = 0
  for (let at = 0; at < blocks.size; at++) {
    const owner = blocks.owner[at] as number
    const count = blocks.words[at] as number
    wordsBefore[at] = allWords
    runningBefore[at] = allRunning
    allWords += count
    words[owner] = (words[owner] as number) + count
    linkCharacters[owner] = (linkCharacters[owner] as number) + (blocks.linkCharacters[at] as number)
    characters[owner] = (characters[owner] as number) + (blocks.characters[at] as number)
    blockCount[owner] = (blockCount[owner] as number) + 1
    if (count < 10 || (blocks.linkCharacters[at] as number) * 3 >= (blocks.characters[at] as number)) continue
    if (((place[owner] as number) & notOfThePage) !== 0 || hidden[owner] === 1) continue
    running[owner] = (running[owner] as number) + count
    allRunning += count
  }
  for (let node = tree.size - 1; node > 0; node--) {
    const parent = tree.parent[node] as number
    words[parent] = (words[parent] as number) + (words[node] as number)
    linkCharacters[parent] = (linkCharacters[parent] as number) + (linkCharacters[node] as number)
    characters[parent] = (characters[parent] as number) + (characters[node] as number)
    blockCount[parent] = (blockCount[parent] as number) + (blockCount[node] as number)
    running[parent] = (running[parent] as number) + (running[node] as number)
  }
  return { words, linkCharacters, characters, blockCount, running, wordsBefore, runningBefore }
}

/** The deepest element that still holds this share of the running text. */
export function deepest(tree: Tree, running: Float64Array, share: number): number {
  const wanted = share * (running[0] as number)
  let found = 0
  if (wanted <= 0) return found
  for (let node = 1; node < tree.size; node++) {
    if (tree.parent[node] === found && (running[node] as number) >= wanted) found = node
  }
  return found
}

export function nearestHolding(tree: Tree, words: Float64Array, share: number): Int32Array {
  const wanted = share * (words[0] as number)
  const out = new Int32Array(tree.size)
  for (let node = 1; node < tree.size; node++)
    out[node] = (words[node] as number) >= wanted ? node : (out[tree.parent[node] as number] as number)
  return out
}

export function meetings(tree: Tree, root: number): Int32Array {
  const out = new Int32Array(tree.size)
  const end = tree.end[root] as number
  for (let node = 1; node < tree.size; node++) {
    const holdsRoot = node <= root && (tree.end[node] as number) >= end
    out[node] = holdsRoot ? (tree.depth[node] as number) : (out[tree.parent[node] as number] as number)
  }
  return out
}

export function countTwins(tree: Tree, kind: Int32Array): Int32Array {
  const counts = new Map<number, number>()
  const keyOf = (node: number): number => (tree.parent[node] as number) * 1_048_576 + (kind[node] as number)
  for (let node = 1; node < tree.size; node++) {
    if (tree.tag[node] !== TEXT) counts.set(keyOf(node), (counts.get(keyOf(node)) ?? 0) + 1)
  }
  const out = new Int32Array(tree.size)
  for (let node = 1; node < tree.size; node++) if (tree.tag[node] !== TEXT) out[node] = counts.get(keyOf(node)) ?? 0
  return out
}

export function countSame(blocks: Blocks) {
  const counts = new Map<number, number>()
  const sameBefore = new Int32Array(blocks.size)
  for (let at = 0; at < blocks.size; at++) {
    const hash = blocks.hash[at] as number
    const before = counts.get(hash) ?? 0
    sameBefore[at] = before
    counts.set(hash, before + 1)
  }
  return { same: Int32Array.from(blocks.hash, (hash) => (counts.get(hash) ?? 1) - 1), sameBefore }
}
