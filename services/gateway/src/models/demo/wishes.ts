import type { JsonObject } from '../../conversation/turn.ts'

/** A call that a message asks for in so many words. */
export interface Wish {
  name: string
  input: JsonObject
}

/** How the demo is asked for a call, each with what it finds; where two overlap, the one that begins first holds. */
const FORMS: { pattern: RegExp; wish(match: RegExpExecArray): Wish | undefined }[] = [
  {
    pattern: /\bcall\s+([\w-]{1,64})\s+with\s+(\{.*?\}(?=\s|[.,;!?]|$))/gis,
    wish: ([, name = '', json = '']) => {
      const input = objectOf(json)
      return input && { name, input }
    },
  },
  {
    pattern: /```[^\n`]*\n(.*?)```/gs,
    wish: ([, code = '']) => ({ name: 'code_execution', input: { code: code.trimEnd() } }),
  },
  {
    pattern: /https?:\/\/[^\s<>"'`)\]}]+/gi,
    wish: ([url]) => ({ name: 'web_fetch', input: { url: url.replace(/[.,;:!?]+$/, '') } }),
  },
  {
    pattern:
      /\bsearch(?:\s+the\s+web)?(?:\s+for)?\s+(\S.*?)(?=[.,;!?]*(?:\s+(?:and|then|and\s+then)\s+(?:search|read|fetch|run|calculate|call)\b|\s*[\n;]|[.!?,;]\s|[.!?,;]*$))/gi,
    wish: ([, query = '']) => ({ name: 'web_search', input: { query: query.replace(/^["'“]|["'”]$/g, '') } }),
  },
  {
    pattern:
      /\b(?:run|calculate)\s+([^\s`].*?)(?=[.,;!?]*(?:\s+(?:and|then|and\s+then)\s+(?:search|read|fetch|run|calculate|call)\b|\s*[\n;]|[.!?,;]\s|[.!?,;]*$))/gi,
    wish: ([, expression = '']) =>
      /\d/.test(expression) ? { name: 'code_execution', input: { code: `print(${expression})` } } : undefined,
  },
]

/** Every call a message asks for, in the order in which it does. */
export function wishesIn(text: string): Wish[] {
  const found = FORMS.flatMap(({ pattern, wish }) =>
    Array.from(text.matchAll(pattern), (match) => ({
      at: match.index,
      end: match.index + match[0].length,
      wish: wish(match),
    })),
  ).sort((one, other) => one.at - other.at)
  let end = 0
  return found.flatMap((one) => {
    if (one.wish === undefined || one.at < end) return []
    end = one.end
    return [one.wish]
  })
}

function objectOf(json: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as JsonObject) : undefined
  } catch {
    return undefined // no call then: the sentence only looked like one
  }
}
