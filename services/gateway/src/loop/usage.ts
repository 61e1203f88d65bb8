import { Fault, type TokenCounts } from '@tollgate/contracts'
import type { ModelEvent } from '../conversation/events.ts'
import type { Dialect, Json, JsonObject, ModelRequest } from '../conversation/turn.ts'
import type { GatewaySettings } from '../settings.ts'

/** About what a token holds, where nobody counted (A-15, P-50). */
const CHARACTERS_PER_TOKEN = 4

export const noTokens: TokenCounts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 }

export interface UsageTotal {
  tokens: TokenCounts
  /** Some of the tokens are our estimate. */
  estimated: boolean
}

export interface UsageMeter {
  /** A model is asked; what it says until `endRound` belongs to this round. */
  beginRound(request: ModelRequest): void
  hear(event: ModelEvent): void
  /** The same for an answer that was forwarded unread: its count, which may be of a part of it only, and its length. */
  hearForwarded(tokens: TokenCounts | undefined, characters: number, whole: boolean): void
  /** The round came to its end: where nobody reported usage, `fail` throws (P-50). */
  endRound(): void
  /** The attempt is given up for another model's, with every round of it: its tokens cost nothing (P-45). */
  forgetAttempt(): void
  /** True once a model was asked. */
  asked(): boolean
  /** What is owed so far; a round that was broken off counts as it stands. */
  total(): UsageTotal
  /** The sum of what upstreams reported, for the client (P-48); undefined when none did. */
  report(): (ModelEvent & { type: 'usage' }) | undefined
}

interface Round {
  request: ModelRequest
  /** Of what was said so far. */
  characters: number
  events: number
  /** The upstream has counted all of it. */
  counted: boolean
  /** What it had counted when the answer began. */
  begun: TokenCounts | undefined
}

/** Sums the tokens of all rounds of a request, and estimates those nobody reported, as CFG-31 has it. */
export function meterUsage(policy: GatewaySettings['streamMissingUsagePolicy']): UsageMeter {
  let settled: UsageTotal = { tokens: noTokens, estimated: false }
  let reported: (ModelEvent & { type: 'usage' }) | undefined
  let round: Round | undefined
  /** What stood when the attempt began. */
  let before: { settled: UsageTotal; reported: (ModelEvent & { type: 'usage' }) | undefined } | undefined
  let asked = false

  const withRound = (): UsageTotal => {
    if (round === undefined || round.counted || round.events === 0) return settled
    const { begun, request, characters } = round
    if (policy === 'allow_free') return begun ? { ...settled, tokens: addTokens(settled.tokens, begun) } : settled
    const guess = estimate(request, characters)
    // what was counted before the answer was over leaves out the rest of it, never what went in
    const tokens = begun ? { ...begun, output: Math.max(begun.output, guess.output) } : guess
    return { tokens: addTokens(settled.tokens, tokens), estimated: true }
  }

  return {
    beginRound(request) {
      asked = true
      settled = withRound()
      before ??= { settled, reported }
      round = { request, characters: 0, events: 0, counted: false, begun: undefined }
    },
    hear(event) {
      if (round === undefined) return
      round.events += 1
      if (event.type === 'delta') round.characters += event.text.length
      if (event.type === 'start') round.begun = event.tokens
      if (event.type !== 'usage') return
      round.counted = true
      settled = { ...settled, tokens: addTokens(settled.tokens, event.tokens) }
      reported = reported === undefined ? event : addReports(reported, event)
    },
    hearForwarded(tokens, characters, whole) {
      if (round === undefined) return
      const counted = whole && tokens !== undefined
      round = { ...round, characters, events: 1, counted, begun: tokens }
      if (counted) settled = { ...settled, tokens: addTokens(settled.tokens, tokens) }
    },
    endRound() {
      const uncounted = round !== undefined && !round.counted
      if (uncounted && policy === 'fail') throw new Fault('upstream', 'the model provider reported no usage')
      settled = withRound()
      round = undefined
    },
    forgetAttempt() {
      round = undefined
      if (before === undefined) return
      settled = before.settled
      reported = before.reported
      before = undefined
    },
    asked: () => asked,
    total: withRound,
    report: () => reported,
  }
}

function estimate({ messages, tools }: ModelRequest, outputCharacters: number): TokenCounts {
  const parts = messages.flatMap((message) => message.parts)
  const input = JSON.stringify(parts).length + JSON.stringify(tools.map((tool) => tool.raw)).length
  return { ...noTokens, input: tokensOf(input), output: tokensOf(outputCharacters) }
}

export const tokensOf = (characters: number): number => Math.ceil(characters / CHARACTERS_PER_TOKEN)

const addTokens = (one: TokenCounts, other: TokenCounts): TokenCounts => ({
  input: one.input + other.input,
  output: one.output + other.output,
  cacheRead: one.cacheRead + other.cacheRead,
  cacheWrite: one.cacheWrite + other.cacheWrite,
  reasoning: one.reasoning + other.reasoning,
})

type Report = ModelEvent & { type: 'usage' }
type Raw = { dialect: Dialect; value: JsonObject }

function addReports(one: Report, other: Report): Report {
  const raw = one.raw && other.raw && one.raw.dialect === other.raw.dialect ? addRaw(one.raw, other.raw) : undefined
  return { type: 'usage', tokens: addTokens(one.tokens, other.tokens), raw }
}

const addRaw = (one: Raw, other: Raw): Raw => ({
  dialect: one.dialect,
  value: addJson(one.value, other.value) as JsonObject,
})

/** Numbers at the same place add up and lists go on, whatever the vendor calls them; of anything else the later one stands. */
function addJson(one: Json | undefined, other: Json | undefined): Json {
  if (other === undefined || other === null) return one ?? null
  if (typeof one === 'number' && typeof other === 'number') return one + other
  if (Array.isArray(one) && Array.isArray(other)) return [...one, ...other]
  if (!isObject(one) || !isObject(other)) return other
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries(Array.from(names, (name) => [name, addJson(one[name], other[name])]))
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
