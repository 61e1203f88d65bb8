import { displayOf, known, TAG_COUNT, TEXT } from './tags.ts'
import { isBlock, type Tree } from './tree.ts'

/** A stretch of text that stands together: what lies between two block boundaries of the page. */
export interface Block {
  /** The innermost block element around it. */
  owner: number
  /** Its first and last text node. */
  first: number
  last: number
  text: string
  characters: number
  words: number
  linkCharacters: number
  links: number
  digits: number
  upper: number
  /** Marks that end a sentence, and commas. */
  stops: number
  commas: number
}

const A = known('a')
const BR = known('br')
const HR = known('hr')
const isHidden = new Uint8Array(TAG_COUNT).map((_, tag) => Number(displayOf(tag) === 'hidden'))

/** The page's text in blocks, in document order; parts that never show are left out. */
export function blocksOf(tree: Tree, isLeftOut: (node: number) => boolean): Block[] {
  const blocks: Block[] = []
  const owner = new Int32Array(tree.size)
  const link = new Int32Array(tree.size)
  let current: Block | undefined
  let pieces: string[] = []
  let breaks = 0

  const close = (): void => {
    if (current && current.characters > 0) {
      current.text = pieces.join('').replace(/\s+/g, ' ').trim()
      blocks.push(current)
    }
    current = undefined
    pieces = []
  }

  let lastLink = 0
  for (let node = 1; node < tree.size; node++) {
    const tag = tree.tag[node] ?? TEXT
    const parent = tree.parent[node] ?? 0
    if (tag !== TEXT) {
      owner[node] = isBlock(tree, node) ? node : (owner[parent] ?? 0)
      link[node] = tag === A ? node : (link[parent] ?? 0)
      if (owner[node] === node || tag === HR) close()
      else if (tag === BR && ++breaks > 1) close()
      if (isHidden[tag]) node = (tree.end[node] ?? node + 1) - 1
      continue
    }
    if (isLeftOut(node)) continue
    const text = tree.text[node] ?? ''
    const box = owner[parent] ?? 0
    if (current && current.owner !== box) close()
    if (!/\S/.test(text)) {
      if (current) pieces.push(' ')
      continue
    }
    breaks = 0
    current ??= startBlock(box, node)
    current.last = node
    pieces.push(text)
    const before = current.characters
    count(current, text)
    const inLink = link[parent] ?? 0
    if (inLink > 0) {
      current.linkCharacters += current.characters - before
      if (inLink !== lastLink) current.links++
      lastLink = inLink
    }
  }
  close()
  return blocks
}

const startBlock = (owner: number, node: number): Block => ({
  owner,
  first: node,
  last: node,
  text: '',
  characters: 0,
  words: 0,
  linkCharacters: 0,
  links: 0,
  digits: 0,
  upper: 0,
  stops: 0,
  commas: 0,
})

/** Letters, digits and what ends a sentence, in one pass; letters of scripts without blanks count as half a word. */
function count(block: Block, text: string): void {
  let inWord = false
  let ideographs = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code <= 0x20 || code === 0xa0) {
      inWord = false
      continue
    }
    block.characters++
    if (code >= 0x61 && code <= 0x7a) {
      if (!inWord) block.words++
      inWord = true
    } else if (code >= 0x30 && code <= 0x39) {
      block.digits++
      if (!inWord) block.words++
      inWord = true
    } else if (code >= 0x41 && code <= 0x5a) {
      block.upper++
      if (!inWord) block.words++
      inWord = true
    } else if (code < 0x80) {
      if (code === 0x2e || code === 0x21 || code === 0x3f) block.stops++
      else if (code === 0x2c) block.commas++
      inWord = inWord && code === 0x27
    } else if (code >= 0x3040 && code <= 0x9fff) {
      ideographs++
      inWord = false
    } else if ((code >= 0x2000 && code <= 0x206f) || (code >= 0x3000 && code <= 0x303f) || code >= 0xff00) {
      if (code === 0x3002 || code === 0xff01 || code === 0xff1f) block.stops++
      else if (code === 0x3001 || code === 0xff0c) block.commas++
      inWord = false
    } else {
      if (!inWord) block.words++
      inWord = true
    }
  }
  block.words += Math.ceil(ideographs / 2)
}
