import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmFromMarkdown } from 'mdast-util-gfm'
import { toString as textOf } from 'mdast-util-to-string'
import { gfm } from 'micromark-extension-gfm'
import { extract } from '../src/extract/extract.ts'
import { defaultExtractLimits, defaultReading, type Extracted, type ExtractJob } from '../src/extract/job.ts'

/** Reads a body as the extracting thread would. */
export function read(
  body: string | Uint8Array,
  contentType?: string,
  change: Partial<ExtractJob> = {},
): Promise<Extracted> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : new Uint8Array(body)
  return extract({
    bytes,
    contentType,
    url: 'https://ex.test/guide/intro',
    isCut: false,
    ...defaultReading,
    limits: defaultExtractLimits,
    ...change,
  })
}

/** The text of a body that can be read; fails on one that cannot. */
export async function textFrom(
  body: string | Uint8Array,
  contentType = 'text/html; charset=utf-8',
  change: Partial<ExtractJob> = {},
): Promise<string> {
  const result = await read(body, contentType, change)
  if (result.status === 'failed') throw new Error(`not read: ${result.failure}`)
  return result.text
}

interface Node {
  type: string
  children?: Node[]
  url?: string
  alt?: string
  value?: string
  depth?: number
  lang?: string | null
  ordered?: boolean
  start?: number | null
}

/** Markdown as CommonMark with GFM reads it: the oracle of what our own writer wrote. */
export function parsed(markdown: string) {
  const tree = fromMarkdown(markdown, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] }) as Node
  const all = (type: string): Node[] => {
    const found: Node[] = []
    const queue: Node[] = [tree]
    for (let node = queue.shift(); node; node = queue.shift()) {
      if (node.type === type) found.push(node)
      queue.unshift(...(node.children ?? []))
    }
    return found
  }
  const string = (node: Node): string => textOf(node as Parameters<typeof textOf>[0])
  return {
    all,
    string,
    text: string(tree),
    links: () => all('link').map((node) => [string(node), node.url]),
    code: () => all('code').map((node) => node.value),
    /** Cells of each table, row by row. */
    tables: () => all('table').map((table) => (table.children ?? []).map((row) => (row.children ?? []).map(string))),
    listDepth: (): number => {
      const depth = (node: Node): number =>
        (node.type === 'list' ? 1 : 0) + Math.max(0, ...(node.children ?? []).map(depth))
      return depth(tree)
    },
  }
}
