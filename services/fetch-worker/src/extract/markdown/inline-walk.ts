import { displayOf, known, TEXT, tagSet } from '../html/tags.ts'
import { attribute, type Tree, textOf } from '../html/tree.ts'
import type { Line, Mark } from './inline.ts'
import { imageUrl, linkUrl } from './urls.ts'

const A = known('a')
const BR = known('br')
const IMG = known('img')
const Q = known('q')
const MATH = known('math')
const INPUT = known('input')
const isCode = tagSet('code tt samp')
const isStrong = tagSet('b strong')
const isEmphasis = tagSet('i em dfn cite')
const isStrike = tagSet('s strike del')

export interface InlineContext {
  base: string
  /** Text nodes, images and links without text that are left out. */
  isLeftOut(node: number): boolean
}

/** What an inline element adds to a line at its start; gives what it adds at its end, or that it was dealt with whole. */
export function startInline(
  tree: Tree,
  node: number,
  line: Line,
  context: InlineContext,
): (() => void) | 'whole' | undefined {
  const tag = tree.tag[node] ?? TEXT
  if (tag === TEXT) {
    if (!context.isLeftOut(node)) line.add({ type: 'text', text: cleanText(tree.text[node] ?? '') })
    return undefined
  }
  if (displayOf(tag) === 'hidden') return 'whole'
  if (tag === A) return startLink(tree, node, line, context)
  if (isCode[tag]) {
    if (!isWhollyLeftOut(tree, node, context)) line.add({ type: 'code', text: cleanText(textOf(tree, node)) })
    return 'whole'
  }
  const mark = isStrong[tag] ? 'strong' : isEmphasis[tag] ? 'emphasis' : isStrike[tag] ? 'strike' : undefined
  if (mark) return startMark(line, mark)
  if (tag === BR) line.add({ type: 'break' })
  else if (tag === IMG) addImage(tree, node, line, context)
  else if (tag === INPUT) addCheckbox(tree, node, line, context)
  else if (tag === MATH) return addMath(tree, node, line, context)
  else if (tag === Q) {
    line.add({ type: 'text', text: '“' })
    return () => line.add({ type: 'text', text: '”' })
  }
  return undefined
}

function startMark(line: Line, mark: Mark): () => void {
  line.add({ type: 'open', mark })
  return () => line.add({ type: 'close', mark })
}

function startLink(tree: Tree, node: number, line: Line, { base, isLeftOut }: InlineContext): (() => void) | undefined {
  const url = linkUrl(attribute(tree, node, 'href'), base)
  if (url === undefined) return undefined
  // A label stands for a link without text; text that was left out needs none, nor does a mark that only leads to where it is.
  const isMute = isLeftOut(node) || (url.includes('#') && withoutFragment(url) === withoutFragment(base))
  const label = isMute ? '' : (attribute(tree, node, 'aria-label') ?? attribute(tree, node, 'title') ?? '')
  line.add({ type: 'link', url, label: cleanText(label).trim().slice(0, MAX_LABEL) })
  return () => line.add({ type: 'end-link' })
}

const withoutFragment = (url: string): string => url.replace(/#.*$/s, '')

const MAX_LABEL = 300

function addImage(tree: Tree, node: number, line: Line, context: InlineContext): void {
  if (context.isLeftOut(node) || isPixel(tree, node)) return
  const url = imageUrl(tree, node, context.base)
  if (url === undefined) return
  const alt = cleanText(attribute(tree, node, 'alt') ?? '')
    .replace(/\s+/g, ' ')
    .trim()
  line.add({ type: 'image', url, alt: shortened(alt) })
}

/** Some pictures are told in whole paragraphs, which are no text of the page. */
const shortened = (alt: string): string =>
  alt.length <= MAX_ALT ? alt : `${alt.slice(0, MAX_ALT).replace(/\s+\S*$/, '')}…`

const MAX_ALT = 120

/** A beacon, or a picture that the page itself calls decoration. */
function isPixel(tree: Tree, node: number): boolean {
  const role = attribute(tree, node, 'role')
  return role === 'presentation' || role === 'none' || attribute(tree, node, 'aria-hidden') === 'true'
}

/** A box that an item of a list begins with, and that says something of the item's words. */
function addCheckbox(tree: Tree, node: number, line: Line, context: InlineContext): void {
  const item = tree.parent[node] ?? 0
  if (attribute(tree, node, 'type') !== 'checkbox' || tree.tag[item] !== LI) return
  for (let at = item + 1; at < node; at++) if (tree.tag[at] !== TEXT || hasWords(tree, at)) return
  if (isWhollyLeftOut(tree, item, context)) return
  line.add({ type: 'verbatim', markdown: attribute(tree, node, 'checked') === undefined ? '[ ]' : '[x]' })
  line.add({ type: 'text', text: ' ' })
}
const LI = known('li')

/** MathML carries its source beside itself; the elements alone read as a row of symbols. */
function addMath(tree: Tree, node: number, line: Line, context: InlineContext): 'whole' | undefined {
  const source = attribute(tree, node, 'alttext')
  if (source === undefined || isWhollyLeftOut(tree, node, context)) return undefined
  line.add({ type: 'code', text: source })
  return 'whole'
}

function isWhollyLeftOut(tree: Tree, node: number, context: InlineContext): boolean {
  const end = tree.end[node] ?? 0
  for (let at = node + 1; at < end; at++) {
    if (tree.tag[at] === TEXT && !context.isLeftOut(at) && hasWords(tree, at)) return false
  }
  return true
}

const hasWords = (tree: Tree, node: number): boolean => /\S/.test(tree.text[node] ?? '')

const invisible = /[^\P{Cc}\t\n\r]|[\u00ad\u200b\u2060\ufeff]/gu

/** Without what nobody sees: controls, soft hyphens, zero-width marks. */
export const cleanText = (text: string): string => text.replace(invisible, '')
