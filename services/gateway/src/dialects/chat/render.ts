import { type Answer, type AnswerBlock, activitiesOf, blocksOf } from '../../conversation/collect.ts'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject } from '../../conversation/turn.ts'
import { annotation, citesPage } from './citations.ts'
import { chatFinish } from './finish.ts'
import { freshChatId } from './stream.ts'
import { toolReport } from './tool-reports.ts'
import { chatUsage } from './usage.ts'

/** A whole answer as `chat.completion`. `model` is the selector as the client wrote it. */
export function renderChat(answer: Answer, model: string): JsonObject {
  const { id, created, extra, usage, finish } = answer
  const own = ownMembers(answer)
  const reports = activitiesOf(answer).flatMap((activity) => toolReport(activity) ?? [])
  return {
    id: id ?? freshChatId(),
    object: 'chat.completion',
    created: created ?? Math.floor(Date.now() / 1000),
    model,
    ...extra,
    ...own.top,
    choices: [
      { index: 0, finish_reason: chatFinish(finish), message: { ...messageOf(answer), ...own.message }, ...own.choice },
    ],
    ...(usage && { usage: chatUsage(usage) }),
    ...(reports.length > 0 && { otari_tool_calls: reports }),
  }
}

function messageOf(answer: Answer): JsonObject {
  const blocks = blocksOf(answer)
  const said = (kind: AnswerBlock['start']['kind']) =>
    blocks.flatMap(({ start, text }) => (start.kind === kind ? text : [])).join('')
  const calls = blocks.flatMap(callOf)
  const thinking = said('thinking')
  const refusal = said('refusal')
  const annotations = annotationsOf(answer, blocks)
  const text = said('text')
  return {
    role: 'assistant',
    content: text === '' && (calls.length > 0 || refusal !== '') ? null : text,
    ...(refusal && { refusal }),
    ...(thinking && { reasoning_content: thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(annotations.length > 0 && { annotations }),
  }
}

function callOf({ start, text }: AnswerBlock): JsonObject[] {
  if (start.kind === 'call')
    return [
      {
        id: start.id,
        type: start.builtin ? 'builtin_function' : 'function',
        function: { name: start.name, arguments: text },
      },
    ]
  return start.kind === 'other' && start.dialect === 'chat' ? [start.value] : []
}

function annotationsOf({ extras }: Answer, blocks: AnswerBlock[]): JsonObject[] {
  const spans = new Map<AnswerBlock, [number, number]>()
  let at = 0
  for (const block of blocks) {
    if (block.start.kind !== 'text') continue
    spans.set(block, [at, at + block.text.length])
    at += block.text.length
  }
  return extras.flatMap(({ dialect, value, block }) => {
    const span = block && dialect !== 'chat' && citesPage(value) ? spans.get(block) : undefined
    return span ? [annotation(value, ...span)] : []
  })
}

/** Members only this dialect knows, put together again from the chunks they came in. */
function ownMembers({ extras }: Answer): { top: JsonObject; choice: JsonObject; message: JsonObject } {
  const own = { top: {}, choice: {}, message: {} }
  for (const { dialect, value } of extras) {
    if (dialect !== 'chat') continue
    const { choices, ...top } = value
    const {
      delta,
      index: _,
      ...choice
    } = (Array.isArray(choices) ? (choices[0] as JsonObject | undefined) : undefined) ?? {}
    own.top = { ...own.top, ...top }
    own.choice = merge(own.choice, choice)
    own.message = merge(own.message, isObject(delta) ? delta : {})
  }
  return own
}

/** As clients put chunks together: texts and lists grow, objects merge, of anything else the later one stands. */
function merge(one: JsonObject, other: JsonObject): JsonObject {
  return {
    ...one,
    ...Object.fromEntries(Object.entries(other).map(([name, value]) => [name, joined(one[name], value)])),
  }
}

function joined(one: Json | undefined, other: Json): Json {
  if (typeof one === 'string' && typeof other === 'string') return one + other
  if (Array.isArray(one) && Array.isArray(other)) return [...one, ...other]
  return isObject(one) && isObject(other) ? merge(one, other) : other
}
