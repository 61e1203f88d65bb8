import type { ModelEvent } from '../../src/conversation/events.ts'
import type { ModelRequest, Wire } from '../../src/conversation/turn.ts'
import type { CallLimits, ModelProvider } from '../../src/models/provider.ts'

type Said = ModelEvent[] | ((request: ModelRequest, limits: CallLimits) => AsyncIterable<ModelEvent>)

export interface ScriptedProvider extends ModelProvider {
  requests: ModelRequest[]
}

/** A model that says what a test wrote for each round; asked once more than that, it fails. */
export function scripted(script: Said[], { name = 'fake', wire = 'openai-chat' as Wire } = {}): ScriptedProvider {
  const requests: ModelRequest[] = []
  return {
    name,
    wire,
    requests,
    async ask(request, limits, tell) {
      const said = script[requests.length]
      requests.push(structuredClone(request))
      if (said === undefined) throw new Error(`no round ${requests.length} was written`)
      for await (const event of typeof said === 'function' ? said(request, limits) : said) await tell(event)
    },
    async close() {},
  }
}

export const tokens = (input: number, output: number) => ({ input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0 })

const usage = (input: number, output: number): ModelEvent => ({
  type: 'usage',
  tokens: tokens(input, output),
  raw: { dialect: 'chat', value: { prompt_tokens: input, completion_tokens: output, details: { cached: 1 } } },
})
const start: ModelEvent = { type: 'start', id: 'up-1', created: 1, model: 'm' }

export const textBlock = (index: number, text: string): ModelEvent[] => [
  { type: 'open', index, block: { kind: 'text' } },
  { type: 'delta', index, text },
  { type: 'close', index },
]
export const callBlock = (index: number, id: string, name: string, args: unknown): ModelEvent[] => [
  { type: 'open', index, block: { kind: 'call', id, name } },
  { type: 'delta', index, text: typeof args === 'string' ? args : JSON.stringify(args) },
  { type: 'close', index },
]

type Reason = (ModelEvent & { type: 'finish' })['reason']

/** A whole round: its blocks, 10 tokens in and 5 out, and why it ended. */
export const round = (blocks: ModelEvent[][], reason: Reason): ModelEvent[] => [
  start,
  ...blocks.flat(),
  usage(10, 5),
  { type: 'finish', reason, raw: reason },
]

export const answers = (text: string): ModelEvent[] => round([textBlock(0, text)], 'stop')
export const calls = (...made: [id: string, name: string, args: unknown][]): ModelEvent[] =>
  round(
    made.map(([id, name, args], index) => callBlock(index, id, name, args)),
    'tool_calls',
  )
