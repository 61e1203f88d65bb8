import { dataRows } from '../../markdown/table.ts'
import { known, tagSet } from '../tags.ts'
import { hintBit } from './hints.ts'
import type { Page } from './page.ts'
import { bitOf } from './places.ts'

const headings = new Set(['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map(known))
const TABLE = known('table')
const isWhole = tagSet('table ul ol dl')
const inCode = bitOf('pre')
const FEW_WORDS = 400
/** How far above a heading there must be text for it to stand in the midst of what is taken. */
const NEAR_BLOCKS = 3

/** What belongs together is taken together, whatever was thought of its parts one by one. */
export function mend(page: Page, taken: Uint8Array): void {
  takeCode(page, taken)
  takeWhole(page, taken)
  takeHeadings(page, taken)
  dropLinks(page, taken)
  // On a long page the heading is known as its title; on a short one it may be a good part of what there is.
  if ((page.words[0] as number) < FEW_WORDS && page.h1 >= 0) taken[page.h1] = 1
}

/** Code stays with the text before or after it (BR-085). */
function takeCode({ blocks, place }: Page, taken: Uint8Array): void {
  const isCode = (at: number): boolean => ((place[blocks.owner[at] as number] as number) & inCode) !== 0
  for (let at = 0; at < blocks.size; at++) {
    if (!isCode(at)) continue
    let end = at + 1
    while (end < blocks.size && isCode(end)) end++
    if (taken[at - 1] === 1 || taken[end] === 1) taken.fill(1, at, end)
    at = end
  }
}

/** A list of which nearly all is taken, and a table of data of which the greater part is, are taken whole (BR-087). */
function takeWhole({ tree, blocks }: Page, taken: Uint8Array): void {
  const whole = new Int32Array(tree.size)
  for (let node = 1; node < tree.size; node++)
    whole[node] = isWhole[tree.tag[node] as number] ? node : (whole[tree.parent[node] as number] as number)
  for (let at = 0; at < blocks.size; ) {
    const start = at++
    const of = whole[blocks.owner[start] as number] as number
    if (of === 0) continue
    while (at < blocks.size && (blocks.owner[at] as number) < (tree.end[of] as number)) at++
    let words = 0
    let wordsTaken = 0
    for (let index = start; index < at; index++) {
      words += blocks.words[index] as number
      if (taken[index] === 1) wordsTaken += blocks.words[index] as number
    }
    if (wordsTaken === words) continue
    const isTable = tree.tag[of] === TABLE
    if (wordsTaken > words * (isTable ? 0.5 : 0.8) && (!isTable || dataRows(tree, of))) taken.fill(1, start, at)
  }
}

/** A heading in the midst of what is taken stays with the text under it (BR-097). */
function takeHeadings({ tree, blocks }: Page, taken: Uint8Array): void {
  for (let at = blocks.size - 2; at > 0; at--) {
    if (taken[at] === 1 || taken[at + 1] === 0) continue
    if (!headings.has(tree.tag[blocks.owner[at] as number] as number)) continue
    if (taken.subarray(Math.max(0, at - NEAR_BLOCKS), at).includes(1)) taken[at] = 1
  }
}

/**
 * Links to other pages, in an element that says it holds such, are no part of a text: unless they are most of what is taken,
 * as on pages that list things.
 */
function dropLinks(page: Page, taken: Uint8Array): void {
  const { tree, blocks } = page
  const isSuch = new Uint8Array(tree.size)
  for (let node = 1; node < tree.size; node++) {
    const isMarked = ((page.hint[node] as number) & elsewhere) !== 0 && isOfLinks(page, node)
    isSuch[node] = isMarked ? 1 : (isSuch[tree.parent[node] as number] as number)
  }
  let words = 0
  let such = 0
  for (let at = 0; at < blocks.size; at++) {
    if (taken[at] === 0) continue
    words += blocks.words[at] as number
    if (isSuch[blocks.owner[at] as number] === 1) such += blocks.words[at] as number
  }
  if (such * FEW > words) return
  for (let at = 0; at < blocks.size; at++) if (isSuch[blocks.owner[at] as number] === 1) taken[at] = 0
}

const isOfLinks = ({ linkCharacters, characters }: Page, node: number): boolean =>
  (linkCharacters[node] as number) > 0.7 * (characters[node] as number)
const elsewhere = hintBit('relate') | hintBit('nav') | hintBit('share')
/** They are few when all that is taken is so many times as much. */
const FEW = 3
