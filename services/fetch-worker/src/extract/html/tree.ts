import { displayOf, known, TEXT, tagNumber } from './tags.ts'

/** Attributes that anything here reads; the others are not kept. */
const keptAttributes = new Set(
  (
    'href src srcset data-src data-original data-srcset alt title class id role style align start type colspan rowspan lang dir ' +
    'datetime itemprop itemtype itemscope property name content rel hidden aria-hidden aria-label aria-level alttext charset ' +
    'http-equiv value data-lang data-language translate data-testid checked shadowrootmode width height'
  ).split(' '),
)

export const LIMITS = { elements: 200_000, depth: 512, attributes: 64, valueCharacters: 8_192, nodes: 500_000 }

/** Most characters kept of a page's JSON-LD, all scripts together. */
export const JSON_LD_CHARACTERS = 512 * 1024

export type Attributes = Readonly<Record<string, string>>
export const noAttributes: Attributes = Object.freeze({})

/**
 * A page as columns, one entry a node, in document order: the descendants of node `n` are `n + 1` to `end[n] - 1`. Every
 * walk over it is a loop, so no nesting can overflow a stack. Node 0 is the root.
 */
export interface Tree {
  size: number
  /** Tag number; TEXT for text. */
  tag: number[]
  parent: number[]
  /** One past the last descendant. */
  end: number[]
  depth: number[]
  /** A text node's characters, undecoded whitespace and all; empty for elements. */
  text: string[]
  attributes: Attributes[]
  title: string
  /** Contents of `<script type="application/ld+json">`. */
  jsonLd: string[]
  scripts: number
  /** Characters inside scripts. */
  scriptCharacters: number
  /** A limit was reached, and what came after it is not in the tree. */
  truncated: boolean
}

export function emptyTree(): Tree {
  return {
    size: 1,
    tag: [known('html')],
    parent: [-1],
    end: [1],
    depth: [0],
    text: [''],
    attributes: [noAttributes],
    title: '',
    jsonLd: [],
    scripts: 0,
    scriptCharacters: 0,
    truncated: false,
  }
}

/** Appends a node; its `end` is set when it is closed. */
export function append(tree: Tree, parent: number, tag: number, text: string, attributes: Attributes): number {
  const node = tree.size++
  tree.tag.push(tag)
  tree.parent.push(parent)
  tree.end.push(node + 1)
  tree.depth.push((tree.depth[parent] ?? 0) + 1)
  tree.text.push(text)
  tree.attributes.push(attributes)
  return node
}

export const attribute = (tree: Tree, node: number, name: string): string | undefined => tree.attributes[node]?.[name]
export const isText = (tree: Tree, node: number): boolean => tree.tag[node] === TEXT
export const isBlock = (tree: Tree, node: number): boolean => {
  const kind = displayOf(tree.tag[node] ?? TEXT)
  return kind === 'block' || kind === 'cell'
}

/** The children of a node, in order. */
export function* children(tree: Tree, node: number): Generator<number> {
  const stop = tree.end[node] ?? 0
  for (let child = node + 1; child < stop; child = tree.end[child] ?? stop) yield child
}

/** All text below a node as one line. */
export function textOf(tree: Tree, node: number, maxCharacters = 10_000): string {
  let out = ''
  const stop = tree.end[node] ?? 0
  for (let at = node; at < stop && out.length < maxCharacters; at++) {
    if (tree.tag[at] === TEXT) out += tree.text[at]
    else if (isBlock(tree, at) || tree.tag[at] === BR) out += ' '
  }
  return out.replace(/\s+/g, ' ').trim()
}

const BR = tagNumber('br')

export const isKeptAttribute = (name: string): boolean => keptAttributes.has(name)
