import { Readability } from '@mozilla/readability'
import { parseHTML } from 'linkedom'
import TurndownService from 'turndown'

const turndown = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced' })

/** What most tools do: Mozilla's Readability over linkedom, and turndown for Markdown. Nothing where it finds nothing. */
export function readabilityMarkdown(html: string): string {
  const { document } = parseHTML(html)
  const article = new Readability(document as unknown as ConstructorParameters<typeof Readability>[0]).parse()
  return article?.content
    ? turndown.turndown(parseHTML(`<html><body>${article.content}</body></html>`).document.body)
    : ''
}
