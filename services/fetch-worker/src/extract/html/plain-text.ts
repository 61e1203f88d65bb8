import { displayOf, known, TEXT, tagSet } from './tags.ts'
import { attribute, type Tree } from './tree.ts'

const BR = known('br')
const PRE = known('pre')
const MATH = known('math')
const isCell = tagSet('td th')
/** Blocks with an empty line before and after them; the others only begin a line. */
const isApart = tagSet('p h1 h2 h3 h4 h5 h6 pre blockquote table ul ol dl figure section article hr details')

export interface PlainOptions {
  isLeftOut(node: number): boolean
  /** Writing stops at about this length. */
  maxCharacters: number
}

const invisible = /[\u00ad\u200b\u2060\ufeff]/g

/** What is left of a page as lines of text, without marks: blocks on lines of their own, cells of a row side by side (WM-44). */
export function toPlainText(tree: Tree, { isLeftOut, maxCharacters }: PlainOptions): { text: string; isCut: boolean } {
  const pieces: string[] = []
  let size = 0
  /** What stands between the last piece and the next. */
  let gap = ''
  /** One past the last node of the `pre` the walk is in. */
  let preEnd = 0
  /** Nodes at whose end a gap is due, innermost last. */
  const ends: { at: number; gap: string }[] = []

  const widen = (wanted: string): void => {
    if (pieces.length > 0 && gaps.indexOf(wanted) > gaps.indexOf(gap)) gap = wanted
  }
  const write = (text: string): void => {
    if (gap.startsWith('\n')) pieces.push(withoutLastBreaks(pieces.pop() ?? ''))
    if (gap !== '') pieces.push(gap)
    size += gap.length + text.length
    gap = ''
    pieces.push(text)
  }
  const addText = (node: number): void => {
    const text = (tree.text[node] as string).slice(0, maxCharacters).replace(invisible, '')
    if (node < preEnd) {
      const lines = text.replace(/\r\n?/g, '\n')
      if (lines !== '') write(gap === '\n\n' ? lines.replace(/^\n+/, '') : lines)
      return
    }
    const words = text.trim()
    if (/^\s/.test(text)) widen(' ')
    if (words === '') return
    write(words.replace(/\s+/g, ' '))
    if (/\s$/.test(text)) widen(' ')
  }

  let node = 1
  while (node < tree.size && size < maxCharacters) {
    while (ends.length > 0 && (ends.at(-1)?.at as number) <= node) widen(ends.pop()?.gap as string)
    const tag = tree.tag[node] as number
    const end = tree.end[node] as number
    if (tag === TEXT) {
      if (!isLeftOut(node)) addText(node)
    } else if (displayOf(tag) === 'hidden') {
      node = end
      continue
    } else if (tag === BR) widen('\n')
    else if (tag === MATH && attribute(tree, node, 'alttext') !== undefined && !isLeftOut(node)) {
      write(attribute(tree, node, 'alttext') as string)
      node = end
      continue
    } else {
      const around = isCell[tag] ? '\t' : isApart[tag] ? '\n\n' : displayOf(tag) === 'block' ? '\n' : ''
      if (around !== '') {
        widen(around)
        ends.push({ at: end, gap: around })
      }
      if (tag === PRE) preEnd = Math.max(preEnd, end)
    }
    node++
  }
  const lines = pieces.join('').split('\n')
  const text = lines.map((line) => line.trimEnd()).join('\n')
  return { text: withoutOuterBreaks(text), isCut: size >= maxCharacters && node < tree.size }
}

function withoutLastBreaks(text: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === '\n') end--
  return text.slice(0, end)
}

const withoutOuterBreaks = (text: string): string => withoutLastBreaks(text.replace(/^\n+/, ''))

/** From the least to the most room. */
const gaps = ['', ' ', '\t', '\n', '\n\n']
