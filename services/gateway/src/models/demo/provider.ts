import { setImmediate } from 'node:timers/promises'
import { Fault } from '@tollgate/contracts'
import type { ModelEvent } from '../../conversation/events.ts'
import type { Tell } from '../../conversation/tell.ts'
import type { Message, ModelRequest } from '../../conversation/turn.ts'
import type { CallLimits, ModelProvider } from '../provider.ts'
import { type Saying, useTools } from './script.ts'

export const demoModels = ['echo', 'tools'] as const

/** Characters of one streamed piece, and pieces between two looks at the event loop. */
const PIECE = 24
const PIECES_AT_ONCE = 64

/**
 * A local, scripted model without any intelligence, for trying the gateway out and for loading it: `demo:echo` says what
 * the user said last; `demo:tools` does what the user asks of the tools it is offered (see `script.ts`). It opens no
 * connection and answers alike to the same request.
 */
export function demoProvider(name: string): ModelProvider {
  return {
    name,
    wire: 'demo',
    async ask(request, limits, tell) {
      const saying = sayingOf(name, request)
      await tell({ type: 'start', id: undefined, created: undefined, model: request.model })
      await say(saying, request, limits, tell)
      const tokens = {
        input: tokensOf(request.messages.map(textOf).join('') + JSON.stringify(request.tools.map(({ raw }) => raw))),
        output: tokensOf(saying.text + JSON.stringify(saying.call ?? '')),
        cacheRead: 0,
        cacheWrite: 0,
        reasoning: 0,
      }
      await tell({ type: 'usage', tokens, raw: undefined })
      const reason = saying.call ? 'tool_calls' : 'stop'
      await tell({ type: 'finish', reason, raw: reason })
    },
    close: async () => {},
  }
}

function sayingOf(name: string, request: ModelRequest): Saying {
  switch (request.model) {
    case 'echo':
      return { text: textOf(request.messages.findLast(({ role }) => role === 'user')), call: undefined }
    case 'tools':
      return useTools(request)
    default:
      throw new Fault('not_found', `the demo models are ${demoModels.map((model) => `${name}:${model}`).join(' and ')}`)
  }
}

async function say(
  { text, call }: Saying,
  { stream }: ModelRequest,
  { signal }: CallLimits,
  tell: Tell<ModelEvent>,
): Promise<void> {
  let index = 0
  if (text !== '') {
    await tell({ type: 'open', index, block: { kind: 'text' } })
    await sayPieces(index, text, stream)
    await tell({ type: 'close', index })
    index++
  }
  if (!call) return
  await tell({ type: 'open', index, block: { kind: 'call', id: call.id, name: call.name } })
  await sayPieces(index, JSON.stringify(call.input), stream)
  await tell({ type: 'close', index })

  async function sayPieces(index: number, text: string, stream: boolean): Promise<void> {
    const size = stream ? PIECE : text.length
    let count = 0
    for (let at = 0; at < text.length; ) {
      let end = Math.min(text.length, at + size)
      if (isHighSurrogate(text.charCodeAt(end - 1)) && end < text.length) end++
      await tell({ type: 'delta', index, text: text.slice(at, end) })
      at = end
      if (++count % PIECES_AT_ONCE === 0) await setImmediate()
      if (signal.aborted) throw new Fault('cancelled', 'the request was cancelled')
    }
  }
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

/** The demo's own way of counting: a token is four characters. */
const tokensOf = (text: string): number => Math.ceil(text.length / 4)

const textOf = (message: Message | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === 'text' || part.type === 'result' ? part.text : '')).join('')
