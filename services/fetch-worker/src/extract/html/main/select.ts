import { known, tagSet } from '../tags.ts'
import type { Tree } from '../tree.ts'
import { type Blocks, blocksOf } from './blocks.ts'
import { describeFor, likelyContent, likelyTypes, type Model, type PageType, pageTypes, takenBlocks } from './look.ts'
import type { Structured } from './structured.ts'

const IMG = known('img')
const isTextless = tagSet('img hr math')

/** Beyond these a page is a list of everything, and looking at each block would take too long. */
const MAX_BLOCKS = 20_000
/** Fewer words than these make no page with a main part and others. */
const FEW_WORDS = 100

export interface Selection {
  /** By node, 1: it is not of the page's main content. Undefined when that can't be told from the rest. */
  isLeftOut: Uint8Array | undefined
  pageType: PageType | undefined
}

/** Words of a block that reads like running text. */
const RUNNING_WORDS = 12
/** A type this likely is told. */
const SURE = 0.5

export function selectMain(tree: Tree, url: string, structured: Structured, model: Model): Selection {
  const blocks = blocksOf(tree)
  const words = blocks.words.reduce((sum, each) => sum + each, 0)
  if (blocks.size > MAX_BLOCKS || words < FEW_WORDS) return { isLeftOut: undefined, pageType: undefined }
  const page = describeFor(tree, blocks, url, structured)
  const types = likelyTypes(page, model)
  const taken = takenBlocks(page, likelyContent(page, model))
  const isLeftOut = new Uint8Array(tree.size).fill(1)
  for (let at = 0; at < blocks.size; at++) {
    if (taken[at] === 1) isLeftOut.fill(0, blocks.first[at] as number, (blocks.last[at] as number) + 1)
  }
  keepTextless(tree, blocks, taken, isLeftOut)
  return { isLeftOut, pageType: pageTypes.find((type) => types[type] >= SURE) }
}

/**
 * What has no text of its own belongs to the main content when the blocks before and after it do; a picture only beside
 * running text, for those of cards and logos say nothing that their names do not.
 */
function keepTextless(tree: Tree, blocks: Blocks, taken: Uint8Array, isLeftOut: Uint8Array): void {
  let next = 0
  for (let node = 1; node < tree.size; node++) {
    while (next < blocks.size && (blocks.first[next] as number) <= node) next++
    const tag = tree.tag[node] as number
    if (!isTextless[tag]) continue
    const isInBlock = isLeftOut[node] === 0
    const isKept = isInBlock || (taken[next - 1] === 1 && (next >= blocks.size || taken[next] === 1))
    const isBesideText = tag !== IMG || isRunning(blocks, next - 1) || isRunning(blocks, next)
    isLeftOut[node] = isKept && isBesideText ? 0 : 1
  }
}

const isRunning = (blocks: Blocks, at: number): boolean =>
  (blocks.words[at] ?? 0) >= RUNNING_WORDS &&
  (blocks.linkCharacters[at] as number) * 2 < (blocks.characters[at] as number)
