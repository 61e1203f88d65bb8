import { codeFence, escapeBrackets, escapeDestination, escapeLineStart, escapeText } from '../markdown/escape.ts'
import type { Levelled } from './headings.ts'
import { type Span, textOf } from './lines.ts'

/** Blocks as Markdown that reads back as their text. */
export function toMarkdown(blocks: Levelled[]): string {
  return joined(blocks, (block) => {
    switch (block.type) {
      case 'text': {
        const text = inline(block.spans, false)
        if (block.level !== undefined) return `${'#'.repeat(block.level)} ${text.replace(/\s+/g, ' ')}`
        return text.split('\n').map(escapeLineStart).join('\n')
      }
      case 'item': {
        const indent = '  '.repeat(block.depth)
        const marker = /^\d+[.)]$/.test(block.marker) ? block.marker : '-'
        const shown = marker === '-' && !isBullet(block.marker) ? `${block.marker} ` : ''
        return `${indent}${marker} ${shown}${inline(block.spans, false).replaceAll('\n', `\n${indent}  `)}`
      }
      case 'code': {
        const content = block.lines.join('\n')
        const fence = codeFence(content)
        return `${fence}\n${content}\n${fence}`
      }
      case 'table':
        return block.isGrid ? grid(block.rows) : rows(block.rows, (cell) => inline(cell, false))
      default:
        return block satisfies never
    }
  })
}

/** Blocks as plain text: the same words and lines, no marks. */
export function toPlainText(blocks: Levelled[]): string {
  return joined(blocks, (block) => {
    switch (block.type) {
      case 'text':
        return textOf(block)
      case 'item':
        return `${'  '.repeat(block.depth)}${block.marker} ${textOf(block)}`
      case 'code':
        return block.lines.join('\n')
      case 'table':
        return rows(block.rows, (spans) => textOf({ spans }))
      default:
        return block satisfies never
    }
  })
}

/** Items follow each other line by line; everything else is apart. */
function joined(blocks: Levelled[], render: (block: Levelled) => string): string {
  let out = ''
  for (const [at, block] of blocks.entries()) {
    const text = render(block)
    if (text.trim() === '') continue
    const isNextItem = block.type === 'item' && blocks[at - 1]?.type === 'item'
    out += (out === '' ? '' : isNextItem ? '\n' : '\n\n') + text
  }
  return out
}

const isBullet = (marker: string): boolean => !/[\p{L}\p{N}]/u.test(marker)

const inline = (spans: Span[], inTable: boolean): string =>
  spans
    .map(({ text, link }) => {
      const escaped = escapeText(text, inTable)
      return link === undefined ? escaped : `[${escapeBrackets(escaped)}](${escapeDestination(link, inTable)})`
    })
    .join('')

const rows = (cells: Span[][][], render: (cell: Span[]) => string): string =>
  cells.map((row) => row.map(render).join('\t')).join('\n')

function grid(cells: Span[][][]): string {
  const [head = [], ...body] = cells
  const row = (each: Span[][]): string =>
    `| ${each.map((cell) => inline(cell, true).replaceAll('\n', ' ')).join(' | ')} |`
  return [row(head), `|${' --- |'.repeat(head.length)}`, ...body.map(row)].join('\n')
}
