import type { PageAssets } from '@tollgate/contracts'
import { imageUrl, linkUrl } from '../markdown/urls.ts'
import { known } from './tags.ts'
import { attribute, type Tree, textOf } from './tree.ts'

const A = known('a')
const IMG = known('img')
const META = known('meta')
const LINK = known('link')

const MAX_IMAGES = 30
const MAX_LINKS = 100
const MAX_TEXT = 500

export const noAssets: PageAssets = { images: [], links: [], truncated: false }

/**
 * The page's images and links, whatever its format (WM-45, WM-46): first what it shows, then what it names for others to
 * show. Of those with the same URL the first is listed.
 */
export function assetsOf(tree: Tree, base: string): PageAssets {
  const images = new Map<string, PageAssets['images'][number]>()
  const links = new Map<string, PageAssets['links'][number]>()
  const named: [source: 'og:image' | 'twitter:image' | 'icon', url: string | undefined][] = []
  let isCut = false

  const addImage = (image: PageAssets['images'][number]): void => {
    if (images.has(image.url)) return
    if (images.size >= MAX_IMAGES) isCut = true
    else images.set(image.url, image)
  }
  const addLink = (node: number): void => {
    const url = linkUrl(attribute(tree, node, 'href'), base)
    if (url === undefined || !/^https?:/.test(url) || links.has(url)) return
    if (links.size >= MAX_LINKS) isCut = true
    else links.set(url, { url, text: textOf(tree, node, MAX_TEXT).slice(0, MAX_TEXT) })
  }

  for (let node = 1; node < tree.size; node++) {
    const tag = tree.tag[node]
    if (tag === A) addLink(node)
    else if (tag === IMG) {
      const url = imageUrl(tree, node, base)
      if (url === undefined) continue
      const alt = (attribute(tree, node, 'alt') ?? '').replace(/\s+/g, ' ').trim().slice(0, MAX_TEXT)
      addImage({ url, alt, width: pixels(tree, node, 'width'), height: pixels(tree, node, 'height'), source: 'img' })
    } else if (tag === META) {
      const name = (attribute(tree, node, 'property') ?? attribute(tree, node, 'name'))?.toLowerCase()
      if (name === 'og:image' || name === 'twitter:image') named.push([name, attribute(tree, node, 'content')])
    } else if (tag === LINK && /(?:^|\s|-)icon(?:$|\s|-)/i.test(attribute(tree, node, 'rel') ?? ''))
      named.push(['icon', attribute(tree, node, 'href')])
  }
  for (const wanted of ['og:image', 'twitter:image', 'icon'] as const) {
    for (const [source, reference] of named) {
      const url = source === wanted ? linkUrl(reference, base) : undefined
      if (url !== undefined && /^https?:/.test(url)) addImage({ url, alt: '', width: null, height: null, source })
    }
  }
  return { images: [...images.values()], links: [...links.values()], truncated: isCut }
}

/** A number of pixels; a percentage is none. */
function pixels(tree: Tree, node: number, name: 'width' | 'height'): number | null {
  const digits = /^\s*(\d{1,7})(?:\.\d+)?\s*(?:px)?\s*$/i.exec(attribute(tree, node, name) ?? '')?.[1]
  return digits === undefined ? null : Number(digits)
}
