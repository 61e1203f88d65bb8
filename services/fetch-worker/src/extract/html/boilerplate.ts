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

function isHidden(tree: Tree, node: number): boolean {
  if (attribute(tree, node, 'hidden') !== undefined || attribute(tree, node, 'aria-hidden') === 'true') return true
  const style = attribute(tree, node, 'style')
  return style !== undefined && /display:\s*none|visibility:\s*hidden/i.test(style)
}
