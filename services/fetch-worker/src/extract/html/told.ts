import { escapeLineStart, escapeText } from '../markdown/escape.ts'
import type { Structured } from './main/structured.ts'
import { parseHtml } from './parse.ts'
import { toPlainText } from './plain-text.ts'

/** Of a shorter text something may be missing: most such pages wait for their scripts. */
const SHORT_CHARACTERS = 300
const BUDGET_MS = 100

/**
 * An article that a page tells machines and does not show yet, when it shows next to nothing: its JSON-LD holds the whole
 * text, often as HTML. Undefined when the page is better than that.
 */
export function toldArticle(structured: Structured, shown: string, isMarkdown: boolean): string | undefined {
  const body = structured.articleBody
  if (shown.length >= SHORT_CHARACTERS || body === undefined || body.length < 3 * Math.max(100, shown.length))
    return undefined
  const tree = /<[a-z]/i.test(body) ? parseHtml(body, BUDGET_MS) : undefined
  const text = tree ? toPlainText(tree, { isLeftOut: () => false, maxCharacters: body.length }).text : body
  const paragraphs = text
    .split(/\n+/)
    .map((line) => line.replace(/\s+/g, ' ').trim())
    .filter((line) => line !== '')
  return paragraphs.map((line) => (isMarkdown ? escapeLineStart(escapeText(line, false)) : line)).join('\n\n')
}
