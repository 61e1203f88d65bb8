import { known, TEXT } from '../html/tags.ts'
import { attribute, isBlock, type Tree } from '../html/tree.ts'
import { codeFence } from './escape.ts'

const BR = known('br')
const CODE = known('code')

/** A `<pre>` as a fenced block: its characters as they are, whatever markup a highlighter put around them (BR-085). */
export function renderCode(tree: Tree, pre: number, maxCharacters: number): string {
  const content = codeText(tree, pre, maxCharacters)
  if (content.trim() === '') return ''
  const fence = codeFence(content)
  return `${fence}${language(tree, pre)}\n${content}\n${fence}`
}

/** The characters of a `<pre>` as lines, without numbers beside them. */
export function codeText(tree: Tree, pre: number, maxCharacters: number): string {
  let out = ''
  const end = tree.end[pre] ?? 0
  for (let at = pre + 1; at < end && out.length <= maxCharacters; at++) {
    if (tree.tag[at] === TEXT) out += (tree.text[at] ?? '').slice(0, maxCharacters)
    else if (isGutter(tree, at)) at = (tree.end[at] ?? end) - 1
    else if (tree.tag[at] === BR || (isBlock(tree, at) && out !== '' && !out.endsWith('\n'))) out += '\n'
  }
  const lines = out.replace(/\r\n?/g, '\n').replaceAll('\u00a0', ' ').split('\n')
  const first = lines.findIndex((line) => line.trim() !== '')
  const last = lines.findLastIndex((line) => line.trim() !== '')
  return lines
    .slice(Math.max(0, first), last + 1)
    .map((line) => line.trimEnd())
    .join('\n')
}

const gutter = /(?:^|[\s_-])(?:gutter|linenos?|line-?numbers?(?:-rows)?|lnt|hljs-ln-numbers)(?:$|[\s_-])/i
/** Line numbers beside code, which are no part of it. Layouts call the room between their columns a gutter, too. */
export const isGutter = (tree: Tree, node: number): boolean => {
  const name = attribute(tree, node, 'class')
  return name !== undefined && gutter.test(name) && holdsNumbersOnly(tree, node)
}

function holdsNumbersOnly(tree: Tree, node: number): boolean {
  const end = tree.end[node] ?? 0
  for (let at = node + 1; at < end; at++)
    if (tree.tag[at] === TEXT && /[^\s\d.:|]/.test(tree.text[at] ?? '')) return false
  return true
}

/** Named on the `<pre>`, on its `<code>`, or on one of the two elements around it. */
function language(tree: Tree, pre: number): string {
  const inner = tree.tag[pre + 1] === CODE ? pre + 1 : pre
  const around = tree.parent[pre] ?? 0
  for (const node of [inner, pre, around, tree.parent[around] ?? 0]) {
    const named = attribute(tree, node, 'data-lang') ?? attribute(tree, node, 'data-language')
    const found =
      named ??
      /(?:^|\s)(?:language|lang|highlight-source|brush:)-?\s*([\w+#.-]+)/.exec(
        attribute(tree, node, 'class') ?? '',
      )?.[1]
    if (found !== undefined && /^[\w+#.-]{1,30}$/.test(found)) return found.toLowerCase()
  }
  return ''
}
