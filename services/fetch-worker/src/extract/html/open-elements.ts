import { displayOf, known, TAG_COUNT, TEXT, tagSet } from './tags.ts'
import { type Attributes, append, LIMITS, noAttributes, type Tree } from './tree.ts'

const HTML = known('html')
const HEAD = known('head')
const BODY = known('body')
const P = known('p')
const A = known('a')
const BR = known('br')
const LI = known('li')

const flags = (test: (tag: number) => boolean): Uint8Array =>
  new Uint8Array(TAG_COUNT).map((_, tag) => Number(test(tag)))
const union = (...sets: Uint8Array[]): Uint8Array => flags((tag) => sets.some((set) => set[tag] === 1))

const isVoid = flags((tag) => displayOf(tag) === 'void')
const isHead = tagSet('head')
const isHeadPart = tagSet('head title meta link base script style noscript template')
const isHeading = tagSet('h1 h2 h3 h4 h5 h6')
const isItem = tagSet('li')
const isTerm = tagSet('dd dt')
const isCell = tagSet('td th')
const isRow = tagSet('tr')
const isRowGroup = tagSet('tbody thead tfoot')
const isTable = tagSet('table')
const isParagraph = tagSet('p')
const isLink = tagSet('a')
export const isTablePart = union(isCell, isRow, isRowGroup, isTable, tagSet('caption'))
/** Opening one of these ends an open paragraph (HTML 13.2.6.4.7). */
const endsParagraph = tagSet(
  'address article aside blockquote center details dialog dir div dl dd dt fieldset figcaption figure footer form ' +
    'h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search section summary table ul',
)
/** No implied end reaches beyond these. */
const isBarrier = tagSet('table td th caption html button')
const isListBarrier = union(isBarrier, tagSet('ul ol menu dir'))
const isTermBarrier = union(isBarrier, tagSet('dl'))
/** End tags that only close what stands in the same block; that of a link may reach further. */
const isFormatting = tagSet('b i u s em strong small font big code tt span strike')
const isCrossable = flags((tag) => displayOf(tag) === 'inline' || tag === P || isHeading[tag] === 1)

export interface OpenElements {
  /** The innermost open element. */
  top(): number
  start(tag: number, attributes: Attributes): void
  finish(tag: number): void
  closeAll(): void
}

/** The stack of open elements, and what opening and closing a tag implies for it. */
export function openElements(tree: Tree): OpenElements {
  const stack: number[] = [0]
  const openCount = new Int32Array(TAG_COUNT)
  /** Elements beyond the depth limit were never opened: their end tags must close nothing. */
  const unopened = new Int32Array(TAG_COUNT)

  const tagAt = (index: number): number => tree.tag[stack[index] ?? 0] ?? TEXT
  const top = (): number => stack[stack.length - 1] ?? 0
  const isOpen = (tag: number): boolean => (openCount[tag] ?? 0) > 0

  const closeFrom = (index: number): void => {
    while (stack.length > index) {
      const node = stack.pop() ?? 0
      tree.end[node] = tree.size
      const tag = tree.tag[node] ?? TEXT
      openCount[tag] = (openCount[tag] ?? 1) - 1
    }
  }

  /** Closes the nearest of `wanted`, and what is open in it, unless a barrier lies between. */
  const closeNearest = (wanted: Uint8Array, barrier: Uint8Array): void => {
    for (let index = stack.length - 1; index > 0; index--) {
      const tag = tagAt(index)
      if (wanted[tag]) closeFrom(index)
      if (wanted[tag] || barrier[tag]) return
    }
  }

  const implyEnds = (tag: number): void => {
    if (isOpen(HEAD) && !isHeadPart[tag]) closeNearest(isHead, isBarrier)
    if (endsParagraph[tag] && isOpen(P)) closeNearest(isParagraph, isBarrier)
    if (tag === LI) {
      if (isOpen(LI)) closeNearest(isItem, isListBarrier)
    } else if (isHeading[tag]) {
      if (isHeading[tagAt(stack.length - 1)]) closeFrom(stack.length - 1)
    } else if (isTerm[tag]) closeNearest(isTerm, isTermBarrier)
    else if (isCell[tag]) closeNearest(isCell, isTable)
    else if (isRow[tag]) closeNearest(isRow, isTable)
    else if (isRowGroup[tag]) closeNearest(isRowGroup, isTable)
    else if (tag === A && isOpen(A)) closeNearest(isLink, isBarrier)
  }

  return {
    top,
    start(tag, attributes) {
      if ((tag === HTML || tag === BODY) && isOpen(tag)) return
      implyEnds(tag)
      const node = append(tree, top(), tag, '', attributes)
      if (isVoid[tag]) return
      if (stack.length >= LIMITS.depth) {
        unopened[tag] = (unopened[tag] ?? 0) + 1
        return
      }
      stack.push(node)
      openCount[tag] = (openCount[tag] ?? 0) + 1
    },
    finish(tag) {
      if (tag === HTML || tag === BODY) return // more may follow, and is still the body's
      const missed = unopened[tag] ?? 0
      if (missed > 0) {
        unopened[tag] = missed - 1
        return
      }
      if (!isOpen(tag)) {
        if ((tag === P || tag === BR) && tree.size < LIMITS.nodes) append(tree, top(), tag, '', noAttributes)
        return
      }
      for (let index = stack.length - 1; index > 0; index--) {
        const at = tagAt(index)
        if (at === tag) closeFrom(index)
        if (at === tag || (isFormatting[tag] && !isCrossable[at]) || (isCell[at] && !isTablePart[tag])) return
      }
    },
    closeAll: () => closeFrom(0),
  }
}
