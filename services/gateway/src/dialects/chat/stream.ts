import { randomBytes } from 'node:crypto'
import type { AnswerEvent, BlockStart, ModelEvent, ToolActivity } from '../../conversation/events.ts'
import type { Json, JsonObject } from '../../conversation/turn.ts'
import type { AnswerWriter } from '../answer-writer.ts'
import { annotation, citesPage } from './citations.ts'
import { chatFinish } from './finish.ts'
import { toolActivity, toolReport } from './tool-reports.ts'
import { chatUsage } from './usage.ts'

export interface ChatStreamOptions {
  /** The selector as the client wrote it. */
  model: string
  /** The client asked for a usage chunk. */
  includeUsage: boolean
  /** The playground's own chunks (R-05). */
  showActivity?: boolean
}

/** R-63 and R-62: the two ways a stream ends. */
export const STREAM_DONE = 'data: [DONE]\n\n'
export const STREAM_FAILED = `data: {"error":{"message":"An error occurred during streaming","type":"server_error"}}\n\n${STREAM_DONE}`

export const freshChatId = (): string => `chatcmpl-${randomBytes(16).toString('hex')}`

interface OpenBlock {
  kind: BlockStart['kind']
  /** A call's place among the client's calls, counted from 0 without gaps (R-46). */
  call: number
}

/**
 * Writes an answer as `chat.completion.chunk` frames: one id, model and time (R-03), one role, first (BR-038), one usage
 * chunk if it was asked for (R-47). What every frame begins with is put together once.
 */
export function chatStream({ model, includeUsage, showActivity = false }: ChatStreamOptions): AnswerWriter {
  const blocks = new Map<number, OpenBlock>()
  let head = ''
  let choice = ''
  let calls = 0
  let textLength = 0
  /** Where the latest block of text begins in the content: what cites a page does so for that one. */
  let textStart = 0
  let usage = ''
  /** All of them go out at once, as vendors do it: clients keep the latest list alone (BR-075). */
  const citations: JsonObject[] = []

  function start({ id, created, extra }: ModelEvent & { type: 'start' }): string {
    if (head !== '') return ''
    const members = {
      id: id ?? freshChatId(),
      object: 'chat.completion.chunk',
      created: created ?? Math.floor(Date.now() / 1000),
      model,
      ...extra,
    }
    head = `data: ${JSON.stringify(members).slice(0, -1)}`
    choice = `${head},"choices":[{"index":0,"delta":`
    return deltaFrame('{"role":"assistant","content":""}')
  }

  const deltaFrame = (delta: string): string => `${choice}${delta},"finish_reason":null}]}\n\n`
  const bareFrame = (name: string, value: Json): string =>
    `${head},"choices":[],${JSON.stringify(name)}:${JSON.stringify(value)}}\n\n`

  function open({ index, block }: ModelEvent & { type: 'open' }): string {
    blocks.set(index, { kind: block.kind, call: calls })
    if (block.kind === 'text') textStart = textLength
    if (block.kind === 'call') {
      const name = JSON.stringify(block.name)
      const id = JSON.stringify(block.id)
      const type = block.builtin ? 'builtin_function' : 'function'
      return callFrame(`{"index":${calls++},"id":${id},"type":"${type}","function":{"name":${name},"arguments":""}}`)
    }
    // the only block of this dialect's own is a call of a custom tool, whole
    if (block.kind === 'other' && block.dialect === 'chat')
      return callFrame(JSON.stringify({ index: calls++, ...block.value }))
    return ''
  }

  const callFrame = (call: string): string => deltaFrame(`{"tool_calls":[${call}]}`)

  function delta({ index, text }: ModelEvent & { type: 'delta' }): string {
    const block = blocks.get(index)
    if (!block) return ''
    switch (block.kind) {
      case 'text':
        textLength += text.length
        return deltaFrame(`{"content":${JSON.stringify(text)}}`)
      case 'thinking':
        return deltaFrame(`{"reasoning_content":${JSON.stringify(text)}}`)
      case 'refusal':
        return deltaFrame(`{"refusal":${JSON.stringify(text)}}`)
      case 'call':
        return callFrame(`{"index":${block.call},"function":{"arguments":${JSON.stringify(text)}}}`)
      case 'redacted_thinking':
      case 'other':
        return ''
      default:
        return block.kind satisfies never
    }
  }

  function extra({ dialect, value }: ModelEvent & { type: 'extra' }): string {
    if (dialect === 'chat') return extraFrame(value)
    if (citesPage(value)) citations.push(annotation(value, textStart, textLength))
    return ''
  }

  const cited = (): string => (citations.length === 0 ? '' : deltaFrame(`{"annotations":${JSON.stringify(citations)}}`))

  /** Part of a chunk in this dialect's own shape, with what only this writer knows added. */
  function extraFrame({ choices, ...top }: JsonObject): string {
    const members = JSON.stringify(top).slice(1, -1)
    const own = Array.isArray(choices) ? (choices[0] as JsonObject | undefined) : undefined
    const shown = own ? [{ index: 0, delta: {}, ...own, finish_reason: null }] : []
    return `${head},"choices":${JSON.stringify(shown)}${members && `,${members}`}}\n\n`
  }

  function tool(activity: ToolActivity): string {
    const report = activity.phase === 'finished' ? toolReport(activity) : undefined
    const reported = report ? bareFrame('otari_tool_calls', [report]) : ''
    const shown = showActivity && !activity.call.byProvider
    return shown ? bareFrame('otari_tool_activity', toolActivity(activity)) + reported : reported
  }

  return {
    keepalive: ': keepalive\n\n',
    push(event: AnswerEvent) {
      switch (event.type) {
        case 'start':
          return start(event)
        case 'open':
          return open(event)
        case 'delta':
          return delta(event)
        case 'extra':
          return extra(event)
        case 'tool':
          return tool(event)
        case 'usage':
          usage = includeUsage ? bareFrame('usage', chatUsage(event)) : ''
          return ''
        case 'finish':
          return `${cited()}${choice}{},"finish_reason":${JSON.stringify(chatFinish(event))}}]}\n\n${usage}`
        case 'close':
        case 'signature':
        // named in a header (C-06)
        case 'container':
          return ''
        default:
          return event satisfies never
      }
    },
    end: () => STREAM_DONE,
    fail: () => STREAM_FAILED,
  }
}
