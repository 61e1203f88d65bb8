import { displayOf, known, TAG_COUNT, TEXT } from '../tags.ts'
import { isBlock, type Tree } from '../tree.ts'

/**
 * A page's text in the stretches that stand together: what lies between two of its block boundaries, in document order.
 * Columns, one entry a block; all numbers that can be had from one pass over the characters.
 */
export interface Blocks {
  size: number
  /** The innermost block element around it. */
  owner: number[]
  /** Its first and last text node. */
  first: number[]
  last: number[]
  /** Without blanks. */
  characters: number[]
  words: number[]
  linkCharacters: number[]
  links: number[]
  digits: number[]
  capitals: number[]
  /** Marks that end a sentence, and commas. */
  stops: number[]
  commas: number[]
  /** The last character. */
  ending: number[]
  /** The same for two blocks that say the same. */
  hash: number[]
  /** Its beginning, blanks collapsed. */
  start: string[]
}

const A = known('a')
const BR = known('br')
const HR = known('hr')
const isHidden = new Uint8Array(TAG_COUNT).map((_, tag) => Number(displayOf(tag) === 'hidden'))

/** Characters of a block that are looked at for what it says. */
const START_CHARACTERS = 120

export function blocksOf(tree: Tree): Blocks {
  const blocks = emptyBlocks()
  const owner = new Int32Array(tree.size)
  const link = new Int32Array(tree.size)
  /** The block that is open: -1 for none. */
  let open = -1
  let breaks = 0
  let lastLink = 0

  const close = (): void => {
    if (open >= 0) blocks.start[open] = (blocks.start[open] ?? '').replace(/\s+/g, ' ').trim()
    open = -1
  }

  for (let node = 1; node < tree.size; node++) {
    const tag = tree.tag[node] as number
    const parent = tree.parent[node] as number
    if (tag !== TEXT) {
      const startsBlock = isBlock(tree, node)
      owner[node] = startsBlock ? node : (owner[parent] as number)
      link[node] = tag === A ? node : (link[parent] as number)
      if (startsBlock || tag === HR || (tag === BR && ++breaks > 1)) close()
      if (isHidden[tag]) node = (tree.end[node] as number) - 1
      continue
    }
    const text = tree.text[node] as string
    const box = owner[parent] as number
    if (open >= 0 && blocks.owner[open] !== box) close()
    if (!/\S/.test(text)) {
      if (open >= 0) addToStart(blocks, open, ' ')
      continue
    }
    breaks = 0
    if (open < 0) open = startBlock(blocks, box, node)
    blocks.last[open] = node
    addToStart(blocks, open, text)
    const added = count(blocks, open, text)
    const inLink = link[parent] as number
    if (inLink > 0) {
      blocks.linkCharacters[open] = (blocks.linkCharacters[open] as number) + added
      if (inLink !== lastLink) blocks.links[open] = (blocks.links[open] as number) + 1
      lastLink = inLink
    }
  }
  close()
  return blocks
}

/** All that a block says, blanks collapsed. */
export function blockText(tree: Tree, blocks: Blocks, at: number): string {
  const pieces: string[] = []
  const last = blocks.last[at] as number
  for (let node = blocks.first[at] as number; node <= last; node++) {
    if (tree.tag[node] === TEXT) pieces.push(tree.text[node] as string)
    else if (tree.tag[node] === BR) pieces.push(' ')
    else if (isHidden[tree.tag[node] as number]) node = (tree.end[node] as number) - 1
  }
  return pieces.join('').replace(/\s+/g, ' ').trim()
}

const emptyBlocks = (): Blocks => ({
  size: 0,
  owner: [],
  first: [],
  last: [],
  characters: [],
  words: [],
  linkCharacters: [],
  links: [],
  digits: [],
  capitals: [],
  stops: [],
  commas: [],
  ending: [],
  hash: [],
  start: [],
})

function startBlock(blocks: Blocks, owner: number, node: number): number {
  blocks.owner.push(owner)
  blocks.first.push(node)
  blocks.last.push(node)
  for (const column of zeroed) blocks[column].push(0)
  blocks.start.push('')
  return blocks.size++
}

const zeroed = [
  'characters',
  'words',
  'linkCharacters',
  'links',
  'digits',
  'capitals',
  'stops',
  'commas',
  'ending',
  'hash',
] as const

function addToStart(blocks: Blocks, at: number, text: string): void {
  const start = blocks.start[at] as string
  if (start.length < START_CHARACTERS) blocks.start[at] = start + text.slice(0, START_CHARACTERS - start.length)
}

/** Adds what a text holds to its block and gives the characters in it; of scripts without blanks two signs are a word. */
function count(blocks: Blocks, at: number, text: string): number {
  let characters = 0
  let words = 0
  let digits = 0
  let capitals = 0
  let stops = 0
  let commas = 0
  let ideographs = 0
  let inWord = false
  let hash = blocks.hash[at] as number
  let ending = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code <= 0x20 || code === 0xa0) {
      inWord = false
      continue
    }
    characters++
    ending = code
    hash = Math.imul(hash ^ code, 0x01000193)
    const isDigit = code >= 0x30 && code <= 0x39
    const isCapital = code >= 0x41 && code <= 0x5a
    if (isDigit || isCapital || (code >= 0x61 && code <= 0x7a)) {
      if (isDigit) digits++
      if (isCapital) capitals++
      if (!inWord) words++
      inWord = true
    } else if (code < 0x80) {
      if (code === 0x2e || code === 0x21 || code === 0x3f) stops++
      else if (code === 0x2c) commas++
      inWord = inWord && code === 0x27
    } else if (code >= 0x3040 && code <= 0x9fff) {
      ideographs++
      inWord = false
    } else if ((code >= 0x2000 && code <= 0x206f) || (code >= 0x3000 && code <= 0x303f) || code >= 0xff00) {
      if (code === 0x3002 || code === 0xff01 || code === 0xff1f) stops++
      else if (code === 0x3001 || code === 0xff0c) commas++
      inWord = false
    } else {
      if (!inWord) words++
      inWord = true
    }
  }
  blocks.characters[at] = (blocks.characters[at] as number) + characters
  blocks.words[at] = (blocks.words[at] as number) + words + Math.ceil(ideographs / 2)
  blocks.digits[at] = (blocks.digits[at] as number) + digits
  blocks.capitals[at] = (blocks.capitals[at] as number) + capitals
  blocks.stops[at] = (blocks.stops[at] as number) + stops
  blocks.commas[at] = (blocks.commas[at] as number) + commas
  blocks.ending[at] = ending
  blocks.hash[at] = hash
  return characters
}
