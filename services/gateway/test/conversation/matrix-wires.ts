import type { TokenCounts } from '@tollgate/contracts'
import {
  anthropicStream,
  type FakeJson,
  type FakeModel,
  fakeAnthropic,
  fakeGemini,
  fakeOpenAi,
  fakeOpenAiResponses,
  geminiStream,
  type ModelScript,
  openAiResponsesStream,
  openAiStream,
  type ScriptedAnswer,
} from '@tollgate/testing'
import type { ProviderSettings } from '../../src/models/registry.ts'

/** An upstream wire with its strict stand-in, and what each vendor says in words of its own. */
export interface MatrixWire {
  start(script: ModelScript): Promise<FakeModel>
  settings(url: string): Omit<ProviderSettings, 'models'>
  stream(answer: ScriptedAnswer, body: FakeJson): string
  usage(tokens: TokenCounts): FakeJson
  /** As much of them as it has words for. */
  counts?(tokens: TokenCounts): TokenCounts
  /** Why an answer ended that was too long. */
  cutShort: string
  /** How it says inside a stream that it has too much to do, the status that stands for that, and how it says nothing. */
  failing: string
  overloaded: 503 | 529
  silence: string
}

const named = (event: FakeJson): string => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`
const overloaded = { type: 'overloaded_error', message: 'busy with secret-host' }

const all = {
  'openai-chat': {
    start: (script) => fakeOpenAi(script, { compatible: true }),
    settings: (url) => ({ type: 'openai-compatible', apiBase: `${url}/v1` }),
    stream: openAiStream,
    usage: ({ input, output, cacheRead, cacheWrite, reasoning }) => ({
      prompt_tokens: input + cacheRead + cacheWrite,
      completion_tokens: output,
      total_tokens: input + cacheRead + cacheWrite + output,
      prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
      completion_tokens_details: { reasoning_tokens: reasoning },
    }),
    cutShort: 'length',
    failing: `data: ${JSON.stringify({ error: overloaded })}\n\n`,
    overloaded: 529,
    silence: ': ping\n\n',
  },
  anthropic: {
    start: (script) => fakeAnthropic(script),
    settings: (url) => ({ type: 'anthropic', apiBase: url }),
    stream: anthropicStream,
    usage: ({ input, output, cacheRead, cacheWrite, reasoning }) => ({
      input_tokens: input,
      output_tokens: output,
      cache_read_input_tokens: cacheRead,
      cache_creation_input_tokens: cacheWrite,
      output_tokens_details: { thinking_tokens: reasoning },
    }),
    cutShort: 'max_tokens',
    failing: named({ type: 'error', error: overloaded }),
    overloaded: 529,
    silence: named({ type: 'ping' }),
  },
  'openai-responses': {
    start: (script) => fakeOpenAiResponses(script),
    settings: (url) => ({ type: 'openai-responses', apiBase: `${url}/v1` }),
    stream: openAiResponsesStream,
    usage: ({ input, output, cacheRead, cacheWrite, reasoning }) => ({
      input_tokens: input + cacheRead + cacheWrite,
      input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: input + cacheRead + cacheWrite + output,
    }),
    cutShort: 'max_output_tokens',
    failing: named({ ...overloaded, type: 'error', code: overloaded.type, param: null }),
    overloaded: 529,
    silence: ': ping\n\n',
  },
  gemini: {
    start: (script) => fakeGemini(script),
    settings: (url) => ({ type: 'gemini', apiBase: `${url}/v1beta` }),
    stream: (answer) => geminiStream(answer),
    usage: ({ input, output, cacheRead, cacheWrite, reasoning }) => ({
      promptTokenCount: input + cacheRead + cacheWrite,
      cachedContentTokenCount: cacheRead,
      candidatesTokenCount: output - reasoning,
      thoughtsTokenCount: reasoning,
    }),
    counts: ({ input, cacheWrite, ...tokens }) => ({ ...tokens, input: input + cacheWrite, cacheWrite: 0 }),
    cutShort: 'MAX_TOKENS',
    failing: `data: ${JSON.stringify({ error: { code: 503, message: overloaded.message, status: 'UNAVAILABLE' } })}\r\n\r\n`,
    overloaded: 503,
    silence: ': ping\r\n\r\n',
  },
} satisfies Record<string, MatrixWire>

/** A stream to the end of the frame that first says `text`. */
export function upTo(stream: string, text: string): string {
  const from = stream.indexOf(text)
  const rest = /^.*?\r?\n\r?\n/s.exec(stream.slice(from))?.[0]
  if (from < 0 || rest === undefined) throw new Error(`nothing in the stream says ${text}`)
  return stream.slice(0, from) + rest
}

export type WireName = keyof typeof all
export const wires: Record<WireName, MatrixWire> = all
export const wireNames = Object.keys(wires) as WireName[]
