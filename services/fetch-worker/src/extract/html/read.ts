import type { Extracted, ExtractJob } from '../job.ts'
import { toMarkdown } from '../markdown/serialise.ts'
import { baseUrl } from '../markdown/urls.ts'
import { notices } from '../notices.ts'
import { boilerplate } from './boilerplate.ts'
import { parseHtml } from './parse.ts'

/** A page's text as Markdown. */
export function readHtml(source: string, { url, limits }: ExtractJob): Extracted {
  const tree = parseHtml(source, limits.htmlMs / 2)
  const isLeftOut = boilerplate(tree)
  const { text, isCut } = toMarkdown(tree, {
    base: baseUrl(tree, url),
    isLeftOut: (node) => isLeftOut[node] === 1,
    maxCharacters: limits.textBytes,
  })
  const said = [...(tree.truncated ? [notices.elements] : []), ...(isCut ? [notices.parser] : [])]
  return { status: 'ok', kind: 'html', text, title: tree.title, notices: said }
}
