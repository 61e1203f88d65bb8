import { known } from '../tags.ts'
import { hintNames } from './hints.ts'
import { type Page, wordsOf } from './page.ts'
import { phraseNames } from './phrases.ts'
import { bitOf, type Place, placeNames } from './places.ts'
import type { Structured } from './structured.ts'

/** A number that says something about one block of a page. */
export type Feature = (page: Described, block: number) => number

/** A page, and what the features ask of it beyond its elements. */
export interface Described extends Page {
  features: Record<string, number>
  /** What the page's JSON-LD says, as one line of words; empty when it says nothing. */
  givenBody: string
  givenText: string
  /** By block: the heading before it; -1 for none. */
  heading: Int32Array
}

const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map(known)
const level = new Uint8Array(256)
for (const [at, tag] of headings.entries()) level[tag] = at + 1

/** Beyond these many blocks their texts are not looked up in what JSON-LD says. */
const LOOKED_UP = 2_000
const MAX_GIVEN_CHARACTERS = 64 * 1024

export function describe(page: Page, structured: Structured, features: Record<string, number>): Described {
  const heading = new Int32Array(page.blocks.size)
  let last = -1
  for (let at = 0; at < page.blocks.size; at++) {
    heading[at] = last
    if (headingLevel(page, at) > 0) last = at
  }
  return {
    ...page,
    features,
    givenBody: plain(structured.articleBody ?? ''),
    givenText: plain(structured.said),
    heading,
  }
}

const plain = (text: string): string =>
  text
    .slice(0, MAX_GIVEN_CHARACTERS)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()

const headingLevel = ({ tree, blocks }: Page, at: number): number =>
  level[tree.tag[blocks.owner[at] as number] as number] as number

const ownerOf = (page: Page, at: number): number => page.blocks.owner[at] as number
const innermostOf = ({ tree, blocks }: Page, at: number): number => tree.parent[blocks.first[at] as number] as number
const wordsIn = (page: Page, at: number): number => page.blocks.words[at] as number
const linkShare = ({ blocks }: Page, at: number): number =>
  (blocks.linkCharacters[at] as number) / (blocks.characters[at] as number)
const ratio = (part: number, whole: number): number => (whole > 0 ? part / whole : 0)

function ancestor({ tree }: Page, node: number, levels: number): number {
  let at = node
  for (let up = 0; up < levels && at > 0; up++) at = tree.parent[at] as number
  return Math.max(0, at)
}

export const blockFeatures = new Map<string, Feature>()
const add = (name: string, feature: Feature): void => {
  blockFeatures.set(name, feature)
}

add('characters', ({ blocks }, at) => Math.log1p(blocks.characters[at] as number))
add('words', (page, at) => Math.log1p(wordsIn(page, at)))
add('link share', linkShare)
add('links', ({ blocks }, at) => blocks.links[at] as number)
add('word length', (page, at) => ratio(page.blocks.characters[at] as number, wordsIn(page, at)))
add('digits', ({ blocks }, at) => (blocks.digits[at] as number) / (blocks.characters[at] as number))
add('capitals', ({ blocks }, at) => (blocks.capitals[at] as number) / (blocks.characters[at] as number))
add('stops', ({ blocks }, at) => blocks.stops[at] as number)
add('stop rate', (page, at) => ratio(page.blocks.stops[at] as number, wordsIn(page, at)))
add('comma rate', (page, at) => ratio(page.blocks.commas[at] as number, wordsIn(page, at)))
add('ends sentence', ({ blocks }, at) => (sentenceEnds.has(blocks.ending[at] as number) ? 1 : 0))
const sentenceEnds = new Set([...'.!?。！？"”’)…'].map((mark) => mark.charCodeAt(0)))
add('ends with colon', ({ blocks }, at) => (blocks.ending[at] === 0x3a ? 1 : 0))
add('ends with question', ({ blocks }, at) => (blocks.ending[at] === 0x3f ? 1 : 0))
add('starts with mark', ({ blocks }, at) => (/^[•·\-–*✓✔▪►»›]/.test(blocks.start[at] as string) ? 1 : 0))
add('has divider', ({ blocks }, at) => (/[|•·›»]/.test(blocks.start[at] as string) ? 1 : 0))
add('heading level', headingLevel)

for (const name of ['p', 'li', 'td', 'th', 'div', 'dt', 'dd'] as const) {
  const tag = known(name)
  add(`is ${name}`, (page, at) => (page.tree.tag[ownerOf(page, at)] === tag ? 1 : 0))
}
for (const name of ['strong', 'b', 'span', 'a', 'button', 'time', 'label', 'em'] as const) {
  const tag = known(name)
  add(`begins in ${name}`, (page, at) => (page.tree.tag[innermostOf(page, at)] === tag ? 1 : 0))
}
for (const name of placeNames) {
  const bit = bitOf(name as Place)
  add(`in ${name}`, (page, at) => (((page.place[innermostOf(page, at)] as number) & bit) !== 0 ? 1 : 0))
}
add('hidden', (page, at) => page.hidden[innermostOf(page, at)] as number)
for (const [index, name] of hintNames.entries()) {
  const bit = 1 << index
  add(`near ${name}`, (page, at) => {
    let node = innermostOf(page, at)
    for (let up = 0; up < 4 && node > 0; up++) {
      if ((page.hint[node] as number) & bit) return 1
      node = page.tree.parent[node] as number
    }
    return 0
  })
  add(`around ${name}`, (page, at) => ((page.hintAround[ownerOf(page, at)] as number) & bit ? 1 : 0))
}
for (const [index, name] of phraseNames.entries()) {
  add(`says ${name}`, (page, at) => ((page.phrases[at] as number) >> index) & 1)
  add(`heading says ${name}`, (page, at) => {
    const heading = page.heading[at] as number
    return heading < 0 ? 0 : ((page.phrases[heading] as number) >> index) & 1
  })
}

add('depth', (page, at) => page.tree.depth[ownerOf(page, at)] as number)
add('position', ({ blocks }, at) => at / blocks.size)
add('words before', (page, at) => ratio(page.wordsBefore[at] as number, page.words[0] as number))
add('running before', (page, at) => ratio(page.runningBefore[at] as number, page.running[0] as number))
add('from start', (_, at) => Math.log1p(at))
add('from end', ({ blocks }, at) => Math.log1p(blocks.size - at))
add('after h1', (page, at) => (page.h1 < 0 ? 0 : Math.max(-50, Math.min(50, at - page.h1))))
add('has h1', (page) => (page.h1 < 0 ? 0 : 1))
add('after heading', (page, at) => ((page.heading[at] as number) < 0 ? -1 : at - (page.heading[at] as number)))
add('under level', (page, at) =>
  (page.heading[at] as number) < 0 ? -1 : headingLevel(page, page.heading[at] as number),
)

for (const step of [-3, -2, -1, 1, 2, 3]) {
  const isThere = (page: Page, at: number): boolean => at + step >= 0 && at + step < page.blocks.size
  add(`words at ${step}`, (page, at) => (isThere(page, at) ? Math.log1p(wordsIn(page, at + step)) : -1))
  add(`link share at ${step}`, (page, at) => (isThere(page, at) ? linkShare(page, at + step) : -1))
  if (Math.abs(step) > 2) continue
  add(`stops at ${step}`, (page, at) => (isThere(page, at) ? Math.min(3, page.blocks.stops[at + step] as number) : -1))
  add(`heading at ${step}`, (page, at) => (isThere(page, at) ? headingLevel(page, at + step) : -1))
  add(`beside ${step}`, (page, at) =>
    isThere(page, at) && page.tree.parent[ownerOf(page, at)] === page.tree.parent[ownerOf(page, at + step)] ? 1 : 0,
  )
}

for (let levels = 0; levels < 5; levels++) {
  const of = (page: Page, at: number): number => ancestor(page, ownerOf(page, at), levels)
  add(`words up ${levels}`, (page, at) => Math.log1p(page.words[of(page, at)] as number))
  add(`share up ${levels}`, (page, at) => ratio(page.words[of(page, at)] as number, page.words[0] as number))
  add(`link share up ${levels}`, (page, at) =>
    ratio(page.linkCharacters[of(page, at)] as number, page.characters[of(page, at)] as number),
  )
  add(`mean words up ${levels}`, (page, at) =>
    ratio(page.words[of(page, at)] as number, page.blockCount[of(page, at)] as number),
  )
  add(`running up ${levels}`, (page, at) => ratio(page.running[of(page, at)] as number, page.running[0] as number))
  add(`running density up ${levels}`, (page, at) =>
    ratio(page.running[of(page, at)] as number, page.words[of(page, at)] as number),
  )
  add(`twins up ${levels}`, (page, at) => page.twins[of(page, at)] as number)
}
for (const name of ['tenth', 'third'] as const) {
  const of = (page: Page, at: number): number => page[name][ownerOf(page, at)] as number
  add(`link share of ${name}`, (page, at) =>
    ratio(page.linkCharacters[of(page, at)] as number, page.characters[of(page, at)] as number),
  )
  add(`running density of ${name}`, (page, at) =>
    ratio(page.running[of(page, at)] as number, page.words[of(page, at)] as number),
  )
  add(
    `up to ${name}`,
    (page, at) => (page.tree.depth[ownerOf(page, at)] as number) - (page.tree.depth[of(page, at)] as number),
  )
  add(`mean words of ${name}`, (page, at) =>
    ratio(page.words[of(page, at)] as number, page.blockCount[of(page, at)] as number),
  )
  add(`running of ${name}`, (page, at) => ratio(page.running[of(page, at)] as number, page.running[0] as number))
}
for (const root of [0, 1, 2, 3]) {
  const isIn = ({ tree, blocks, roots }: Page, at: number): boolean => {
    const node = roots[root] as number
    return (blocks.first[at] as number) > node && (blocks.first[at] as number) < (tree.end[node] as number)
  }
  add(`in root ${root}`, (page, at) =>
    isIn(page, at) ? 1 : (page.blocks.first[at] as number) <= (page.roots[root] as number) ? -1 : 2,
  )
  add(`below root ${root}`, (page, at) =>
    isIn(page, at)
      ? (page.tree.depth[ownerOf(page, at)] as number) - (page.tree.depth[page.roots[root] as number] as number)
      : -1,
  )
  add(
    `up from root ${root}`,
    (page, at) =>
      (page.tree.depth[page.roots[root] as number] as number) - (page.meeting[root]?.[ownerOf(page, at)] as number),
  )
}

const kindOf = (page: Page, at: number): number => page.kind[ownerOf(page, at)] as number
add('of its kind', (page, at) => Math.log1p(page.kindBlocks[kindOf(page, at)] as number))
add('mean words of its kind', (page, at) =>
  ratio(page.kindWords[kindOf(page, at)] as number, page.kindBlocks[kindOf(page, at)] as number),
)
add('share of its kind', (page, at) => ratio(page.kindWords[kindOf(page, at)] as number, page.words[0] as number))
add('said again', (page, at) => page.same[at] as number)
add('said before', (page, at) => page.sameBefore[at] as number)

add('like the title', (page, at) => {
  if (wordsIn(page, at) > 30 || page.titleWords.size === 0) return 0
  const words = wordsOf(page.blocks.start[at] as string)
  let found = 0
  for (const word of words) if (page.titleWords.has(word)) found++
  return ratio(found, words.size)
})
const lookUp = (given: string, page: Described, at: number): number => {
  if (given === '' || at >= LOOKED_UP) return -1
  const words = plain(page.blocks.start[at] as string).slice(0, 50)
  return words.length > 8 && given.includes(words) ? 1 : 0
}
add('in given body', (page, at) => lookUp(page.givenBody, page, at))
add('in given text', (page, at) => lookUp(page.givenText, page, at))
