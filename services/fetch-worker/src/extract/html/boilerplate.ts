import { isHidden } from './shell.ts'
import { known, TEXT, tagSet } from './tags.ts'
import { attribute, type Tree } from './tree.ts'

const isChrome = tagSet('nav header footer aside form button dialog menu noscript')
const chromeRoles = new Set([
  'navigation',
  'banner',
  'contentinfo',
  'complementary',
  'search',
  'dialog',
  'menu',
  'toolbar',
])
const ARTICLE = known('article')

/** Marks what is on a page but not of it, by what its elements say they are: menus, banners, footers, forms, hidden parts. */
export function boilerplate(tree: Tree): Uint8Array {
  const out = new Uint8Array(tree.size)
  for (let node = 1; node < tree.size; node++) {
    const parent = tree.parent[node] ?? 0
    const tag = tree.tag[node] ?? TEXT
    const role = attribute(tree, node, 'role')
    const isInArticle = tree.tag[parent] === ARTICLE
    const isMarked =
      (isChrome[tag] === 1 && !isInArticle) || (role !== undefined && chromeRoles.has(role)) || isHidden(tree, node)
    out[node] = out[parent] === 1 || isMarked ? 1 : 0
  }
  return out
}

/** Marks only what is never shown: hidden elements, and what is for readers whose browser runs no scripts. */
export function unseen(tree: Tree): Uint8Array {
  const out = new Uint8Array(tree.size)
  for (let node = 1; node < tree.size; node++) {
    const isMarked = tree.tag[node] === NOSCRIPT || isHidden(tree, node)
    out[node] = out[tree.parent[node] ?? 0] === 1 || isMarked ? 1 : 0
  }
  return out
}
const NOSCRIPT = known('noscript')
