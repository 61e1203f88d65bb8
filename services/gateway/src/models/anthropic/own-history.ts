import { isObject } from '../../conversation/json.ts'
import type { JsonObject, Message } from '../../conversation/turn.ts'
import { NO_RESULT } from '../history.ts'
import { isRecord } from '../signatures.ts'
import { assistantBlocks } from './assistant.ts'
import { userBlocks } from './user.ts'

interface OwnMessage {
  role: string
  blocks: JsonObject[]
  /** The message as the client wrote it; undefined once anything about it is ours. */
  wire: JsonObject | undefined
}

/**
 * A conversation as its client wrote it, block by block, with what the gateway's own rounds added. Only what the vendor
 * would refuse is mended: a call without a result gets one that says so, a result without a call goes (BR-050), thinking
 * that nobody signed goes where it is not taken (BR-017), and so does a call of the vendor's own tools that was left
 * without a result (BR-056).
 */
export function ownHistory(messages: readonly Message[], replayUnsigned: boolean): JsonObject[] {
  const read = merged(messages.map((message) => readMessage(message, replayUnsigned)))
  return read.flatMap((message, at) => mended(message, read, at)).map(written)
}

function readMessage(message: Message, replayUnsigned: boolean): OwnMessage {
  const { role, parts, raw } = message
  if (raw?.dialect === 'messages') {
    const { content } = raw.value
    const all = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as JsonObject[])
    const blocks = all.filter((block) => block.type !== 'thinking' || isTaken(block.signature, replayUnsigned))
    return { role: String(raw.value.role), blocks, wire: blocks.length === all.length ? raw.value : undefined }
  }
  const ids = parts.flatMap((part) => (part.type === 'call' ? [part.id] : []))
  if (role === 'assistant') return { role, blocks: assistantBlocks(message, ids, replayUnsigned), wire: undefined }
  return { role: 'user', blocks: userBlocks(parts, []), wire: undefined }
}

const isTaken = (signature: unknown, unsigned: boolean): boolean => (signature ? !isRecord(signature) : unsigned)

/** Neighbours of one role are one message where one of them is ours; a message that we emptied is none. */
function merged(messages: OwnMessage[]): OwnMessage[] {
  const all: OwnMessage[] = []
  for (const message of messages) {
    if (message.blocks.length === 0 && message.wire === undefined) continue
    const last = all.at(-1)
    const joins = last?.role === message.role && (last.wire === undefined || message.wire === undefined)
    if (!joins) {
      all.push({ ...message, blocks: [...message.blocks] })
      continue
    }
    for (const block of message.blocks) last.blocks.push(block)
    last.wire = undefined
  }
  return all
}

function mended(message: OwnMessage, all: OwnMessage[], at: number): OwnMessage[] {
  if (message.role === 'assistant') return answered(message, all, at)
  return message.role === 'user' ? paired(message, all, at) : [message]
}

/** The calls of a message are answered in the next one, which is made where there is none. */
function answered(message: OwnMessage, all: OwnMessage[], at: number): OwnMessage[] {
  const next = all[at + 1]
  const open = next === undefined ? new Set() : unanswered(message)
  const kept =
    open.size === 0
      ? message
      : changed(
          message,
          message.blocks.filter((block) => !open.has(block)),
        )
  const calls = callsOf(message)
  if (calls.length === 0) return kept.blocks.length === 0 ? [] : [kept]
  if (next?.role === 'user') return [kept]
  return [kept, { role: 'user', blocks: resultsOf(calls, all, at + 1), wire: undefined }]
}

/** Calls of the vendor's own tools that the rest of the message does not answer. */
function unanswered({ blocks }: OwnMessage): Set<JsonObject> {
  const answered = new Set(blocks.map(({ tool_use_id: answers }) => answers))
  return new Set(blocks.filter(({ type, id }) => type === 'server_tool_use' && !answered.has(id)))
}

/** Results of the calls right before, each once and all of them, first; nothing about a message in order is changed. */
function paired(message: OwnMessage, all: OwnMessage[], at: number): OwnMessage[] {
  const { blocks } = message
  const before = all[at - 1]
  const calls = before?.role === 'assistant' ? callsOf(before) : []
  const results = resultsOf(calls, all, at)
  const wanted = new Set(results)
  const first = blocks.slice(0, results.length)
  const inOrder =
    blocks.filter(isResult).length === results.length && first.every((block) => isResult(block) && wanted.has(block))
  if (inOrder) return [message]
  const left = [...results, ...blocks.filter((block) => !isResult(block))]
  return left.length === 0 ? [] : [changed(message, left)]
}

/** Results of `calls` count up to the next message of the model. */
function resultsOf(calls: string[], all: OwnMessage[], at: number): JsonObject[] {
  const results = new Map<string, JsonObject>()
  for (let next = at; next < all.length; next++) {
    const { role, blocks } = all[next]!
    if (role === 'assistant') break
    for (const block of blocks) {
      const id = String(block.tool_use_id)
      if (isResult(block) && !results.has(id)) results.set(id, block)
    }
  }
  return calls.map((id) => results.get(id) ?? noResult(id))
}

const changed = ({ role }: OwnMessage, blocks: JsonObject[]): OwnMessage => ({ role, blocks, wire: undefined })

const isResult = ({ type }: JsonObject): boolean => type === 'tool_result'

const callsOf = ({ blocks }: OwnMessage): string[] =>
  blocks.flatMap(({ type, id }) => (type === 'tool_use' ? [String(id)] : []))

const noResult = (id: string): JsonObject => ({
  type: 'tool_result',
  tool_use_id: id,
  content: NO_RESULT,
  is_error: true,
})

const written = ({ role, blocks, wire }: OwnMessage): JsonObject => wire ?? { role, content: blocks.filter(isObject) }
