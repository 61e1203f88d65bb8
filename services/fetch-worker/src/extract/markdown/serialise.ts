import { displayOf, known, TEXT, tagSet } from '../html/tags.ts'
import { attribute, type Tree } from '../html/tree.ts'
import { openBlocks } from './blocks.ts'
import { isGutter, renderCode } from './code.ts'
import { openLine } from './inline.ts'
import { type InlineContext, startInline } from './inline-walk.ts'
import { captionOf, dataRows, renderTable } from './table.ts'

const PRE = known('pre')
const HR = known('hr')
const BR = known('br')
const LI = known('li')
const OL = known('ol')
const DD = known('dd')
const TABLE = known('table')
const BLOCKQUOTE = known('blockquote')
const isList = tagSet('ul ol menu dir')
const isDivision = tagSet('div p section header hgroup')
const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map(known)

export interface MarkdownOptions extends InlineContext {
  /** Writing stops at about this length; what is left is not written. */
  maxCharacters: number
}

export interface Markdown {
  text: string
  isCut: boolean
}

interface OpenList {
  node: number
  bullet: string
  /** Number of the next item; undefined for bullets. */
  next: number | undefined
  hasItems: boolean
}

/** The tree, or what `isLeftOut` leaves of it, as CommonMark with GFM's tables. One loop, no recursion. */
export function toMarkdown(tree: Tree, options: MarkdownOptions): Markdown {
  const blocks = openBlocks(options.maxCharacters)
  const line = openLine(options.maxCharacters)
  const lists: OpenList[] = []
  /** What is to be done when the walk leaves an element. */
  const ends: { at: number; act: () => void }[] = []
  let heading = 0
  let breaks = 0
  /** A definition begins with the next words, if they are words of its own: nothing else can stand behind a colon. */
  let isDefinition = false

  const flush = (): void => {
    breaks = 0
    const text = line.take({ inTable: false, isSingle: heading > 0 })
    if (text === '') return
    blocks.write(heading > 0 ? `${'#'.repeat(heading)} ${text}` : isDefinition ? `: ${text}` : text)
    isDefinition = false
  }
  const later = (node: number, act: () => void): void => {
    ends.push({ at: tree.end[node] ?? 0, act })
  }

  const startItem = (node: number): void => {
    const list = lists.at(-1)
    const marker = list?.next === undefined ? `${list?.bullet ?? '-'} ` : `${list.next++}. `
    blocks.enter({
      first: marker,
      rest: ' '.repeat(marker.length),
      isTight: list?.hasItems === true || isJoined(list),
    })
    if (list) list.hasItems = true
    later(node, () => {
      flush()
      blocks.leave()
    })
  }
  /** A list in an item follows its text without a gap; a number other than 1 needs one, or it would be read as text. */
  const isJoined = (list: OpenList | undefined): boolean =>
    lists.length > 1 && (list?.next === undefined || list.next <= 2)

  const startList = (node: number): void => {
    const isStray =
      lists.length > 0 && tree.tag[tree.parent[node] ?? 0] !== LI && isList[tree.tag[tree.parent[node] ?? 0] ?? TEXT]
    if (isStray) blocks.enter({ first: '  ', rest: '  ', isTight: true })
    const start = Number.parseInt(attribute(tree, node, 'start') ?? '1', 10)
    const next = tree.tag[node] === OL ? (start >= 0 && start < 1e9 ? start : 1) : undefined
    lists.push({ node, bullet: next === undefined ? blocks.bullet() : '', next, hasItems: false })
    later(node, () => {
      flush()
      lists.pop()
      if (isStray) blocks.leave()
    })
  }

  const startTable = (node: number): number | undefined => {
    const rows = dataRows(tree, node)
    if (!rows) return undefined
    const caption = captionOf(tree, node)
    if (caption !== undefined) {
      walk(caption + 1, tree.end[caption] ?? 0)
      flush()
    }
    blocks.write(renderTable(tree, rows, options))
    return tree.end[node]
  }

  /** Starts a block; gives where to go on when it was dealt with whole. */
  const startBlock = (node: number, tag: number): number | undefined => {
    if (heading > 0 && isDivision[tag]) {
      // A heading is one line, whatever it is laid out with.
      line.add({ type: 'break' })
      later(node, () => line.add({ type: 'break' }))
      return undefined
    }
    flush()
    isDefinition = tag === DD || (isDefinition && isDivision[tag] === 1)
    const level = headings.indexOf(tag) + 1
    if (tag === PRE) {
      if (!isLeftOutWhole(node)) blocks.write(renderCode(tree, node, options.maxCharacters))
      return tree.end[node]
    }
    if (tag === TABLE) {
      const next = startTable(node)
      if (next !== undefined) return next
    } else if (isGutter(tree, node)) return tree.end[node]
    else if (isList[tag]) startList(node)
    else if (tag === LI) startItem(node)
    else if (tag === BLOCKQUOTE) {
      blocks.enter({ first: '> ', rest: '> ', isTight: false })
      later(node, () => {
        flush()
        blocks.leave()
      })
    } else if (tag === DD) {
      later(node, () => {
        isDefinition = false
      })
    }
    if (level > 0) {
      const outer = heading
      heading = level
      later(node, () => {
        flush()
        heading = outer
      })
    } else if (tag !== LI && tag !== BLOCKQUOTE && !isList[tag]) later(node, flush)
    return undefined
  }

  const isLeftOutWhole = (node: number): boolean => {
    const end = tree.end[node] ?? 0
    for (let at = node + 1; at < end; at++) if (tree.tag[at] === TEXT && !options.isLeftOut(at)) return false
    return true
  }

  const visit = (node: number): number => {
    const tag = tree.tag[node] ?? TEXT
    const kind = displayOf(tag)
    if (tag === HR) {
      flush()
      if (!options.isLeftOut(node)) blocks.write('---')
      return node + 1
    }
    if (kind === 'block' || kind === 'cell') return startBlock(node, tag) ?? node + 1
    if (tag === BR && ++breaks > 1) {
      flush()
      return node + 1
    }
    if (tag === TEXT && breaks > 0 && /\S/.test(tree.text[node] ?? '')) breaks = 0
    const started = startInline(tree, node, line, options)
    if (typeof started === 'function') later(node, started)
    return started === 'whole' ? (tree.end[node] ?? node + 1) : node + 1
  }

  const walk = (from: number, to: number): void => {
    const depth = ends.length
    let node = from
    while (node < to && !blocks.isFull() && !line.isFull()) {
      while (ends.length > depth && (ends.at(-1)?.at ?? 0) <= node) ends.pop()?.act()
      node = visit(node)
    }
    while (ends.length > depth) ends.pop()?.act()
  }

  walk(0, tree.size)
  const isCut = blocks.isFull() || line.isFull()
  flush()
  return { text: blocks.text(), isCut }
}
