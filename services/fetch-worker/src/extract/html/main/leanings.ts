import type { Tree } from '../tree.ts'
import type { Blocks } from './blocks.ts'

/** By word: how much more (or less) likely than others a block is main content when the word stands at its beginning. */
export type Lexicon = ReadonlyMap<string, number>

/** As a model keeps it: words by tenths of their leaning. */
export type StoredLexicon = Record<string, string>

export function openLexicon(stored: StoredLexicon): Lexicon {
  const out = new Map<string, number>()
  for (const [tenths, words] of Object.entries(stored))
    for (const word of words.split(' ')) out.set(word, Number(tenths) / 10)
  return out
}

export interface Leanings {
  /** By block: mean leaning of the words it begins with, and the lowest of them. */
  leaning: Float64Array
  lowest: Float64Array
  /** By node: mean leaning of the blocks in it, each by its words. */
  leaningIn: Float64Array
}

export const beginningWords = (start: string): string[] => start.toLowerCase().match(/\p{L}+/gu) ?? []

export function leaningsOf(tree: Tree, blocks: Blocks, lexicon: Lexicon): Leanings {
  const leaning = new Float64Array(blocks.size)
  const lowest = new Float64Array(blocks.size)
  const leaningIn = new Float64Array(tree.size)
  const words = new Float64Array(tree.size)
  for (let at = 0; at < blocks.size; at++) {
    const beginning = beginningWords(blocks.start[at] as string)
    let sum = 0
    let low = 0
    for (const word of beginning) {
      const of = lexicon.get(word) ?? 0
      sum += of
      low = Math.min(low, of)
    }
    leaning[at] = sum / Math.max(1, beginning.length)
    lowest[at] = low
    const owner = blocks.owner[at] as number
    const count = blocks.words[at] as number
    leaningIn[owner] = (leaningIn[owner] as number) + (leaning[at] as number) * count
    words[owner] = (words[owner] as number) + count
  }
  for (let node = tree.size - 1; node > 0; node--) {
    const parent = tree.parent[node] as number
    leaningIn[parent] = (leaningIn[parent] as number) + (leaningIn[node] as number)
    words[parent] = (words[parent] as number) + (words[node] as number)
  }
  for (let node = 0; node < tree.size; node++)
    leaningIn[node] = (leaningIn[node] as number) / Math.max(1, words[node] as number)
  return { leaning, lowest, leaningIn }
}
