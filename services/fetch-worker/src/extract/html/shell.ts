import { displayOf, known, TEXT } from './tags.ts'
import { attribute, type Tree } from './tree.ts'

/** Elements that an application fills in; an empty one says that it has not run. */
const roots = new Set(['root', 'app', '__next', '__nuxt', 'q-app', 'svelte'])
const FEW_CHARACTERS = 200
const MANY_SCRIPTS = 3
const NOSCRIPT = known('noscript')

export interface Shell {
  /** Characters of text that a reader without scripts sees, runs of blanks counted once. */
  visibleCharacters: number
  /** The page is only a frame that scripts fill in. */
  likelyJsRendered: boolean
}

/** How much of a page is there before its scripts have run; the same whatever is made of it (WM-48). */
export function shellOf(tree: Tree): Shell {
  const before = visibleBefore(tree)
  const visibleCharacters = before[tree.size] as number
  const isScripted = visibleCharacters < FEW_CHARACTERS && tree.scripts >= MANY_SCRIPTS
  return { visibleCharacters, likelyJsRendered: isScripted || (tree.scripts > 0 && hasEmptyRoot(tree, before)) }
}

function hasEmptyRoot(tree: Tree, before: Int32Array): boolean {
  for (let node = 1; node < tree.size; node++) {
    const id = attribute(tree, node, 'id')
    if (id !== undefined && roots.has(id) && before[node] === before[tree.end[node] as number]) return true
  }
  return false
}

/** By node: characters of visible text before it. Text for those without scripts is not visible. */
function visibleBefore(tree: Tree): Int32Array {
  const out = new Int32Array(tree.size + 1)
  let count = 0
  let unseenUntil = 0
  for (let node = 1; node < tree.size; node++) {
    out[node] = count
    if (tree.tag[node] !== TEXT) {
      const isUnseen =
        displayOf(tree.tag[node] as number) === 'hidden' || tree.tag[node] === NOSCRIPT || isHidden(tree, node)
      if (isUnseen) unseenUntil = Math.max(unseenUntil, tree.end[node] as number)
    } else if (node >= unseenUntil) count += lengthOf(tree.text[node] as string)
  }
  out[tree.size] = count
  return out
}

function lengthOf(text: string): number {
  let length = 0
  let inBlank = true
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const isBlank = code <= 0x20 || code === 0xa0
    if (!isBlank || !inBlank) length++
    inBlank = isBlank
  }
  return inBlank && length > 0 ? length - 1 : length
}

export function isHidden(tree: Tree, node: number): boolean {
  if (attribute(tree, node, 'hidden') !== undefined || attribute(tree, node, 'aria-hidden') === 'true') return true
  const style = attribute(tree, node, 'style')
  return style !== undefined && /display:\s*none|visibility:\s*hidden/i.test(style)
}
