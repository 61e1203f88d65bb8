import { parseUrl } from '@tollgate/contracts'
import { known, TEXT } from '../tags.ts'
import type { Tree } from '../tree.ts'
import type { Blocks } from './blocks.ts'
import { hintsIn } from './hints.ts'
import { countSame, countTwins, deepest, meetings, nearestHolding, sumUp } from './measure.ts'
import { phrasesIn } from './phrases.ts'
import { placeBit, roleBits } from './places.ts'

const BODY = known('body')
const HTML = known('html')
const H1 = known('h1')

/** Shares of a page's running text that an element may hold; for each the deepest that does is a root. */
const ROOT_SHARES = [0.9, 0.7, 0.5, 0.3]
const SHORT_WORDS = 40

/** A page as the model looks at it: what each element stands in and holds, all by passes over the columns of its tree. */
export interface Page {
  tree: Tree
  url: URL | undefined
  blocks: Blocks
  /** By node: hints of its own, and its own with those of everything around it. */
  hint: Int32Array
  hintAround: Int32Array
  place: Int32Array
  hidden: Uint8Array
  /** By node, sums over the blocks in it. `running`: words of blocks that read like running text. */
  words: Float64Array
  linkCharacters: Float64Array
  characters: Float64Array
  blockCount: Float64Array
  running: Float64Array
  /** By node: the nearest around it that holds a tenth, three tenths of the words. */
  tenth: Int32Array
  third: Int32Array
  roots: number[]
  /** By root and node: how deep the innermost element is that holds both. */
  meeting: Int32Array[]
  /** By node: number of its kind, which is its path of tags and classes; by kind: blocks and words. */
  kind: Int32Array
  kindBlocks: number[]
  kindWords: number[]
  /** By node: how many siblings are of the same kind. */
  twins: Int32Array
  /** By block: how many say the same, and how many of them before it; bits of its phrases. */
  same: Int32Array
  sameBefore: Int32Array
  phrases: Int32Array
  /** By block: words, and words of running text, before it. */
  wordsBefore: Float64Array
  runningBefore: Float64Array
  /** The block of the first h1; -1 for none. */
  h1: number
  titleWords: Set<string>
}

export function describePage(tree: Tree, blocks: Blocks, url: string): Page {
  const { hint, hintAround, place, hidden, kind, kinds } = describeElements(tree)
  const sums = sumUp(tree, blocks, place, hidden)
  const kindBlocks = Array<number>(kinds).fill(0)
  const kindWords = Array<number>(kinds).fill(0)
  for (let at = 0; at < blocks.size; at++) {
    const of = kind[blocks.owner[at] as number] as number
    kindBlocks[of] = (kindBlocks[of] as number) + 1
    kindWords[of] = (kindWords[of] as number) + (blocks.words[at] as number)
  }
  const roots = ROOT_SHARES.map((share) => deepest(tree, sums.running, share))
  return {
    tree,
    url: parseUrl(url),
    blocks,
    hint,
    hintAround,
    place,
    hidden,
    ...sums,
    tenth: nearestHolding(tree, sums.words, 0.1),
    third: nearestHolding(tree, sums.words, 0.3),
    roots,
    meeting: roots.map((root) => meetings(tree, root)),
    kind,
    kindBlocks,
    kindWords,
    twins: countTwins(tree, kind),
    ...countSame(blocks),
    phrases: Int32Array.from(blocks.start, (start, at) =>
      (blocks.words[at] as number) <= SHORT_WORDS ? phrasesIn(start) : 0,
    ),
    h1: blocks.owner.findIndex((owner) => tree.tag[owner] === H1),
    titleWords: wordsOf(tree.title),
  }
}

export const wordsOf = (text: string): Set<string> =>
  new Set(
    text
      .slice(0, 400)
      .toLowerCase()
      .split(/[^\p{L}\p{N}]+/u)
      .filter((word) => word.length > 2),
  )

function describeElements(tree: Tree) {
  const hint = new Int32Array(tree.size)
  const hintAround = new Int32Array(tree.size)
  const place = new Int32Array(tree.size)
  const hidden = new Uint8Array(tree.size)
  const kind = new Int32Array(tree.size)
  const classes = new Map<string, number>()
  const kinds = new Map<number, number>()
  for (let node = 1; node < tree.size; node++) {
    const tag = tree.tag[node] as number
    if (tag === TEXT) continue
    const parent = tree.parent[node] as number
    const {
      class: className,
      id,
      role,
      style,
      hidden: isHidden,
      'aria-hidden': ariaHidden,
    } = tree.attributes[node] ?? {}
    let own = 0
    let classNumber = 0
    if (className) {
      own = hintsIn(className)
      classNumber = classes.get(className) ?? classes.size + 1
      if (classNumber > classes.size) classes.set(className, classNumber)
    }
    if (id) own |= hintsIn(id)
    if (tag === BODY || tag === HTML) own = 0
    hint[node] = own
    hintAround[node] = (hintAround[parent] as number) | own
    place[node] = (place[parent] as number) | (placeBit[tag] as number) | (role ? (roleBits.get(role) ?? 0) : 0)
    const hides =
      isHidden !== undefined ||
      ariaHidden === 'true' ||
      (style !== undefined && /display:\s*none|visibility:\s*hidden/i.test(style))
    hidden[node] = hides ? 1 : (hidden[parent] as number)
    // Paths meet only by accident: the key is a number of 53 bits, so that a page of 100,000 classes stays quick.
    const key = ((kind[parent] as number) * 4_194_304 + classNumber) * 256 + tag
    const number = kinds.get(key) ?? kinds.size + 1
    if (number > kinds.size) kinds.set(key, number)
    kind[node] = number
  }
  return { hint, hintAround, place, hidden, kind, kinds: kinds.size + 1 }
}
