import type { Extracted, ExtractJob } from '../job.ts'
import { toMarkdown } from '../markdown/serialise.ts'
import { baseUrl } from '../markdown/urls.ts'
import { notices } from '../notices.ts'
import { boilerplate } from './boilerplate.ts'
import { parseHtml } from './parse.ts'
import { isChallenge, isShell } from './shell.ts'

/** A page's text as Markdown. A page that only asks whether a browser is there is no page (BR-101). */
export function readHtml(source: string, { url, limits }: ExtractJob): Extracted {
  const tree = parseHtml(source, limits.htmlMs / 2)
  const isLeftOut = boilerplate(tree)
  const { text, isCut } = toMarkdown(tree, {
    base: baseUrl(tree, url),
    isLeftOut: (node) => isLeftOut[node] === 1,
    maxCharacters: limits.textBytes,
  })
  const characters = text.trim().length
  if (isChallenge(source, tree.title ?? '', characters)) return { status: 'failed', failure: 'bot_protection' }
  const said = [
    ...(tree.truncated ? [notices.elements] : []),
    ...(isCut ? [notices.parser] : []),
    ...(isShell(tree, characters) ? [characters === 0 ? notices.script : notices.scriptShell] : []),
  ]
  return { status: 'ok', kind: 'html', text, title: tree.title, notices: said }
}
