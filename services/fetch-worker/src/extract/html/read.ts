import type { PageFacts } from '@tollgate/contracts'
import type { Extracted, ExtractJob } from '../job.ts'
import { toMarkdown } from '../markdown/serialise.ts'
import { baseUrl } from '../markdown/urls.ts'
import { notices } from '../notices.ts'
import { assetsOf } from './assets.ts'
import { boilerplate, unseen } from './boilerplate.ts'
import { isChallenge } from './challenge.ts'
import { factsOf } from './facts.ts'
import { languageOfText } from './language.ts'
import type { Model, PageType } from './main/look.ts'
import { trainedModel } from './main/model.ts'
import { selectMain } from './main/select.ts'
import { readStructured, type Structured } from './main/structured.ts'
import { parseHtml } from './parse.ts'
import { toPlainText } from './plain-text.ts'
import { shellOf } from './shell.ts'
import { toldArticle } from './told.ts'
import type { Tree } from './tree.ts'

/** Text beside which a page's empty frame says little about the page. */
const MUCH_TEXT = 1_000

/** A page in the form that was asked for, and what it says of itself. One that only asks for a browser is none (BR-101). */
export function readHtml(source: string, job: ExtractJob, model: Model = trainedModel()): Extracted {
  const tree = parseHtml(source, job.limits.htmlMs / 2)
  const base = baseUrl(tree, job.url)
  const structured = readStructured(tree.jsonLd)
  const { visibleCharacters, likelyJsRendered } = shellOf(tree)
  if (job.challenges !== 'as-is' && isChallenge(source, tree.title, visibleCharacters))
    return { status: 'failed', failure: 'bot_protection' }
  const { text, isCut, extractor, pageType } =
    job.format === 'html' ? asItIs(source) : written(tree, base, structured, job, model)
  const facts: PageFacts = factsOf(tree, base, structured)
  if (pageType !== undefined) facts.pageType = pageType
  if (facts.language === undefined && job.format !== 'html') {
    const language = languageOfText(text)
    if (language !== undefined) facts.language = language
  }
  const said = [
    ...(tree.truncated ? [notices.elements] : []),
    ...(isCut ? [notices.parser] : []),
    ...(likelyJsRendered && visibleCharacters < MUCH_TEXT
      ? [text.trim() === '' ? notices.script : notices.scriptShell]
      : []),
  ]
  return {
    status: 'ok',
    kind: 'html',
    text,
    format: job.format,
    extractor,
    title: tree.title,
    facts,
    likelyJsRendered,
    notices: said,
    ...(job.assets ? { assets: assetsOf(tree, base) } : {}),
  }
}

interface Written {
  text: string
  isCut: boolean
  extractor: 'main' | 'whole' | 'none'
  pageType?: PageType | undefined
}

const asItIs = (source: string): Written => ({ text: source, isCut: false, extractor: 'none' })

/** Main content where it can be told from the rest; else what its elements do not call something else; else all of it. */
function written(tree: Tree, base: string, structured: Structured, job: ExtractJob, model: Model): Written {
  const write = (isLeftOut: Uint8Array): { text: string; isCut: boolean } => {
    const options = { isLeftOut: (node: number) => isLeftOut[node] === 1, maxCharacters: job.limits.textBytes }
    return job.format === 'text' ? toPlainText(tree, options) : toMarkdown(tree, { ...options, base })
  }
  if (job.part === 'whole') return { ...write(unseen(tree)), extractor: 'whole' }
  const { isLeftOut, pageType } = selectMain(tree, job.url, structured, model)
  const main = write(isLeftOut ?? boilerplate(tree))
  const told = toldArticle(structured, main.text, job.format === 'markdown')
  if (told !== undefined) return { text: told, isCut: false, extractor: 'main', pageType }
  if (main.text.trim() !== '') return { ...main, extractor: 'main', pageType }
  return { ...write(unseen(tree)), extractor: 'whole', pageType }
}
