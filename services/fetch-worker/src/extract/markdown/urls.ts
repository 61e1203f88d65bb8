import { parseUrl } from '@tollgate/contracts'
import { known } from '../html/tags.ts'
import { attribute, type Tree } from '../html/tree.ts'

/** What links and images are resolved against: the final URL, or the page's `<base>` on top of it (BR-092). */
export function baseUrl(tree: Tree, finalUrl: string): string {
  const href = tree.tag.indexOf(BASE)
  const wanted = href < 0 ? undefined : attribute(tree, href, 'href')
  return (wanted === undefined ? undefined : resolve(wanted, finalUrl)) ?? finalUrl
}
const BASE = known('base')

const linkSchemes = new Set(['http:', 'https:', 'mailto:', 'tel:', 'ftp:'])

/** An absolute link; undefined when it leads nowhere a reader could follow (`javascript:`, an empty one, no URL). */
export function linkUrl(href: string | undefined, base: string): string | undefined {
  if (href === undefined || href.trim() === '') return undefined
  const url = resolve(href, base)
  return url !== undefined && linkSchemes.has(url.slice(0, url.indexOf(':') + 1)) ? url : undefined
}

/** An image's address: lazy ones keep it aside, with a placeholder for `src`. */
export function imageUrl(tree: Tree, node: number, base: string): string | undefined {
  const candidates = [
    attribute(tree, node, 'data-src'),
    attribute(tree, node, 'data-original'),
    attribute(tree, node, 'src'),
    firstOfSrcset(attribute(tree, node, 'srcset')),
    firstOfSrcset(attribute(tree, node, 'data-srcset')),
  ]
  for (const candidate of candidates) {
    const url = candidate === undefined || candidate.trim() === '' ? undefined : resolve(candidate, base)
    if (url !== undefined && /^https?:/.test(url)) return url
  }
  return undefined
}

const firstOfSrcset = (srcset: string | undefined): string | undefined => srcset?.trim().split(/[\s,]+/)[0]

function resolve(reference: string, base: string): string | undefined {
  return parseUrl(reference.trim(), base)?.href
}
