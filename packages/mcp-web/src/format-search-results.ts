import { z } from 'zod'
import { errorResult, type McpTool, mcpTool, textResult } from './tool.ts'

const text = z
  .string()
  .nullish()
  .transform((value) => (value ?? '').replace(/\s+/g, ' ').trim())

/** A hit of ours, or of another search that calls its text `content` (WM-70). */
const hit = z
  .object({ title: text, url: text, snippet: text, content: text })
  .transform(({ title, url, snippet, content }) => ({ title: title || url, url, body: snippet || content }))
  .refine(({ title }) => title !== '', 'a result has neither title nor url')
type Hit = z.output<typeof hit>

const hits = z.array(hit)
const readable = z.union([hits, z.object({ results: hits }).transform(({ results }) => results)])

const listed = z.array(z.looseObject({}))
const resultsArguments = z.object({
  results: z
    .union([z.looseObject({ results: listed }), listed, z.string()])
    .describe(
      'The output of web_search as it is, or a list of {title, url, snippet or content}, or the JSON of either',
    ),
})

/** `format_search_results`: pure, so that it needs no setting and no network (WM-73). */
export const formatSearchResults: McpTool = mcpTool({
  name: 'format_search_results',
  description:
    'Turn search results into numbered entries that can be cited as [1], [2], followed by a list of references.',
  openWorld: false,
  arguments: resultsArguments,
  async answer({ results }) {
    const read = readable.safeParse(typeof results === 'string' ? parsed(results) : results)
    if (read.success) return textResult(layOut(read.data))
    return errorResult('format_search_results failed: results is neither an answer of web_search nor a list of results')
  },
})

/** Undefined for what is no JSON, which no form of results is. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** WM-71. Titles and snippets are of one line each: one with a line break could pass itself off as another entry. */
function layOut(found: Hit[]): string {
  const entries = found.map(({ title, body }, at) => `[${at + 1}] ${title}\n${body === '' ? '' : `${body}\n`}\n`)
  const references = found.map(({ title, url }, at) => `\n[${at + 1}] ${title}${url === '' ? '' : ` - ${url}`}`)
  return `${entries.join('')}References:${references.join('')}`
}
