import type { Block } from './blocks.ts'
import { textOf } from './lines.ts'

export type Levelled = Exclude<Block, { type: 'text' }> | (Extract<Block, { type: 'text' }> & { level?: number })

/** A heading is larger than the text by this much, or bold. */
const LARGER = 1.12
const MAX_HEADING = 200
const MAX_BOLD_HEADING = 100
const MAX_LEVEL = 6

/** Which paragraphs are headings, by the sizes of the document's fonts: the largest is of the first level. */
export function withLevels(found: Block[]): Levelled[] {
  const body = bodySize(found)
  const blocks = found.map((block) => asNumbered(block, body))
  const isLarge = (block: Block): boolean =>
    block.type === 'text' && block.size >= LARGER * body && canHead(block, MAX_HEADING)
  const sizes = [...new Set(blocks.filter(isLarge).map(({ size }) => half(size)))].sort((a, b) => b - a)
  const boldLevel = Math.min(MAX_LEVEL, sizes.length + 1)
  return blocks.map((block) => {
    if (block.type !== 'text') return block
    if (isLarge(block)) return { ...block, level: Math.min(MAX_LEVEL, sizes.indexOf(half(block.size)) + 1) }
    const isHead = block.isBold && block.size >= 0.88 * body && canHead(block, MAX_BOLD_HEADING)
    return isHead && !/[.,;:]$/.test(textOf(block)) ? { ...block, level: boldLevel } : block
  })
}

/** What is numbered and larger than the text is a heading, not an item of a list. */
function asNumbered(block: Block, body: number): Block {
  if (block.type !== 'item' || block.size < LARGER * body || !/\d/.test(block.marker)) return block
  const { spans, size, marker } = block
  return { type: 'text', spans: [{ text: `${marker} ` }, ...spans], size, isBold: false, isOpen: false }
}

/** The size most of the text has. */
function bodySize(blocks: Block[]): number {
  const weights = new Map<number, number>()
  for (const block of blocks) {
    if (block.type !== 'text' && block.type !== 'item') continue
    // a document all in bold has no bold headings
    const size = half(block.size)
    weights.set(size, (weights.get(size) ?? 0) + textOf(block).length)
  }
  const [most] = [...weights].sort((a, b) => b[1] - a[1])
  return most?.[0] ?? 0
}

const half = (size: number): number => Math.round(size * 2) / 2

const canHead = (block: Extract<Block, { type: 'text' }>, most: number): boolean => {
  const text = textOf(block)
  return text.length <= most && /\p{L}{2}/u.test(text) && text.split('\n').length <= 3
}
