import type { PageFormat } from '@tollgate/contracts'
import { type Block, toBlocks } from './blocks.ts'
import { toColumns } from './columns.ts'
import { type Levelled, withLevels } from './headings.ts'
import { between, countWords, type Vocabulary } from './hyphens.ts'
import { textOf, toSegments } from './lines.ts'
import { type Sheet, withoutRepeats } from './margins.ts'
import type { PdfPage } from './page.ts'
import { toMarkdown, toPlainText } from './render.ts'

export interface LaidOut {
  text: string
  /** The first heading of the first level. */
  heading: string | undefined
}

/** Pages as one text in the order it is read. */
export function layOut(pages: { number: number; page: PdfPage }[], format: PageFormat): LaidOut {
  const sheets = withoutRepeats(
    pages.map(({ number, page }): Sheet => {
      const { width, height, runs } = page
      return { number, width, height, segments: toSegments(runs) }
    }),
  )
  const words = countWords(sheets.flatMap(({ segments }) => segments.map(textOf)))
  const blocks: Block[] = []
  for (const { segments } of sheets)
    for (const column of toColumns(segments)) append(blocks, toBlocks(column, words), words)
  const levelled = withLevels(blocks)
  return { text: format === 'text' ? toPlainText(levelled) : toMarkdown(levelled), heading: firstHeading(levelled) }
}

/** A paragraph that a column or page cut in two is one again, when its second half begins in lower case. */
function append(blocks: Block[], next: Block[], words: Vocabulary): void {
  const [last, [first, ...rest]] = [blocks.at(-1), next]
  if (
    !first ||
    !last ||
    (last.type !== 'text' && last.type !== 'item') ||
    first.type !== 'text' ||
    !goesOn(last, first)
  ) {
    blocks.push(...next)
    return
  }
  const end = last.spans.at(-1)
  const [begin] = first.spans
  if (end && begin) {
    const glue = between(end.text, begin.text, false, words)
    if (glue.drops > 0) end.text = end.text.slice(0, -glue.drops)
    last.spans.push({ text: glue.text }, ...first.spans)
    last.isOpen = first.isOpen
  }
  blocks.push(...rest)
}

const goesOn = (last: Extract<Block, { spans: unknown }>, first: Extract<Block, { type: 'text' }>): boolean =>
  last.isOpen &&
  Math.abs(last.size - first.size) < 0.05 * last.size &&
  /[\p{Ll}\p{N},\-‐–]$/u.test(textOf(last)) &&
  /^\p{Ll}/u.test(textOf(first))

const firstHeading = (blocks: Levelled[]): string | undefined => {
  const found = blocks.slice(0, 8).find((block) => block.type === 'text' && block.level === 1)
  return found?.type === 'text' ? textOf(found).replace(/\s+/g, ' ') : undefined
}
