import { setImmediate } from 'node:timers/promises'
import { RE2JS } from 're2js'
import { isObject } from '../conversation/json.ts'
import type { Json } from '../conversation/turn.ts'

/** What is searched of a tool. */
export interface SearchedTool {
  name: string
  description: string | undefined
  parameters: Json | undefined
}

/** Why a query was not searched for, in the vendor's words for it. */
export class SearchFailure extends Error {
  override readonly name = 'SearchFailure'
  readonly code: 'invalid_tool_input' | 'execution_time_exceeded'
  constructor(code: SearchFailure['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** Finds names of tools, the best first. */
export type Search = (query: string) => Promise<string[]>

const MOST_FOUND = 5
const MOST_TEXT_CHARACTERS = 2_000
const MOST_PATTERN_CHARACTERS = 200
/** States of a pattern's automaton, which every character of every text is held against. */
const MOST_STATES = 1_000
const MOST_SEARCH_MS = 1_000
/** How long a search may keep everything else waiting. */
const SLICE_MS = 10

/** Name, description, and the arguments' names and descriptions, as the vendor searches them. */
function textOf({ name, description, parameters }: SearchedTool): string {
  const properties = isObject(parameters) && isObject(parameters.properties) ? parameters.properties : {}
  const said = Object.entries(properties).flatMap(([argument, schema]) => [
    argument,
    isObject(schema) && typeof schema.description === 'string' ? schema.description : '',
  ])
  return [name, description ?? '', ...said].join('\n').slice(0, MOST_TEXT_CHARACTERS)
}

/**
 * By a regular expression, whatever its case: models write one as often as the other. The engine takes time in proportion
 * to the text, and a pattern that would take too much of it anyway is given up.
 */
export function patternSearch(tools: readonly SearchedTool[]): Search {
  const texts = tools.map((tool) => ({ name: tool.name, text: textOf(tool) }))
  return async (query) => {
    const pattern = compiled(query)
    const until = performance.now() + MOST_SEARCH_MS
    const byName: string[] = []
    const byText: string[] = []
    const pause = pausing()
    for (const { name, text } of texts) {
      if (pattern.matcher(name).find()) byName.push(name)
      else if (byText.length < MOST_FOUND && pattern.matcher(text).find()) byText.push(name)
      if (byName.length === MOST_FOUND) break
      if (performance.now() > until) throw new SearchFailure('execution_time_exceeded', 'The pattern takes too long.')
      await pause()
    }
    return [...byName, ...byText].slice(0, MOST_FOUND)
  }
}

function compiled(query: string): RE2JS {
  if (query.length > MOST_PATTERN_CHARACTERS)
    throw new SearchFailure('invalid_tool_input', `A pattern has at most ${MOST_PATTERN_CHARACTERS} characters.`)
  let pattern: RE2JS
  try {
    pattern = RE2JS.compile(query, RE2JS.CASE_INSENSITIVE)
  } catch (thrown) {
    throw new SearchFailure('invalid_tool_input', `Not a pattern: ${thrown instanceof Error ? thrown.message : ''}`)
  }
  if (pattern.programSize() > MOST_STATES) throw new SearchFailure('invalid_tool_input', 'The pattern is too large.')
  return pattern
}

const K1 = 1.2
const B = 0.75
/** A word of the name says more than one of the description. */
const NAME_WEIGHT = 3

interface Indexed {
  name: string
  counts: Map<string, number>
  length: number
}

/** By words, ranked by BM25 (Robertson and Zaragoza, 2009). */
export function wordSearch(tools: readonly SearchedTool[]): Search {
  let index: Promise<{ documents: Indexed[]; holding: Map<string, number> }> | undefined
  return async (query) => {
    index ??= indexed(tools)
    const { documents, holding } = await index
    const average = documents.reduce((sum, { length }) => sum + length, 0) / Math.max(1, documents.length)
    const words = new Set(wordsOf(query.slice(0, MOST_TEXT_CHARACTERS)))
    const pause = pausing()
    const scored: { name: string; score: number }[] = []
    for (const { name, counts, length } of documents) {
      let score = 0
      for (const word of words) {
        const count = counts.get(word) ?? 0
        if (count === 0) continue
        const held = holding.get(word) ?? 0
        const rarity = Math.log(1 + (documents.length - held + 0.5) / (held + 0.5))
        score += (rarity * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / average))
      }
      if (score > 0) scored.push({ name, score })
      await pause()
    }
    return scored
      .sort((one, other) => other.score - one.score)
      .slice(0, MOST_FOUND)
      .map(({ name }) => name)
  }
}

async function indexed(tools: readonly SearchedTool[]) {
  const holding = new Map<string, number>()
  const documents: Indexed[] = []
  const pause = pausing()
  for (const tool of tools) {
    const counts = new Map<string, number>()
    const add = (word: string, weight: number) => counts.set(word, (counts.get(word) ?? 0) + weight)
    const words = wordsOf(textOf(tool))
    for (const word of words) add(word, 1)
    for (const word of wordsOf(tool.name)) add(word, NAME_WEIGHT - 1)
    for (const word of counts.keys()) holding.set(word, (holding.get(word) ?? 0) + 1)
    documents.push({ name: tool.name, counts, length: words.length })
    await pause()
  }
  return { documents, holding }
}

/** `getUserData` and `get_user_data` are three words each; a plural is the word it is the plural of. */
const wordsOf = (text: string): string[] =>
  text
    .replace(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .flatMap((word) => (word === '' ? [] : [word.length > 3 ? word.replace(/(?<!s)s$/, '') : word]))

/** Lets everything else go on from time to time. */
function pausing(): () => Promise<void> | undefined {
  let since = performance.now()
  return () => {
    if (performance.now() - since < SLICE_MS) return undefined
    return setImmediate().then(() => {
      since = performance.now()
    })
  }
}
