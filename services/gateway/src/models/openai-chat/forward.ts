import { renderChat } from '../../dialects/chat/render.ts'
import { chatStream, STREAM_DONE, STREAM_FAILED } from '../../dialects/chat/stream.ts'
import type { Speech } from '../convert.ts'
import { type ByteSink, type Forwarded, jsonHead } from '../forward.ts'
import { forwardReply } from '../forward-reply.ts'
import type { LastWords } from '../forward-stream.ts'
import { parseJson } from '../reply.ts'
import type { UpstreamReply } from '../upstream.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { chatReader, finishReason } from './events.ts'
import { chatMender, mendable } from './mend.ts'
import { streamed, whole } from './reply.ts'
import { countedIn } from './usage.ts'
import { chatWatch } from './watch.ts'

const DONE = Buffer.from(STREAM_DONE)
const words: LastWords = { done: DONE, failed: Buffer.from(STREAM_FAILED), lastFrame, owed: Buffer.alloc(0) }
const speech: Speech = { writer: chatStream, render: (answer, { model }) => renderChat(answer, model) }

export const forwardChat = forwardReply({
  watch: (origin, { includeUsage }) => chatWatch(origin, includeUsage),
  words,
  forwardWhole,
  reader: chatReader,
  streamed,
  whole,
  speech,
})

async function forwardWhole(reply: UpstreamReply, sink: ByteSink, origin: Origin): Promise<Forwarded> {
  const bytes = await reply.bytes()
  const json = mendable.safeParse(parseJson(bytes.toString('utf8'), origin)).data
  if (json?.error) throw faultOfFrame(origin, json)
  if (!json?.choices) throw brokenAnswer('unreadable', origin, new Error('no choices'))
  if (json.choices.length === 0) throw brokenAnswer('empty', origin)
  const body = chatMender().mend(json) ? Buffer.from(JSON.stringify(json)) : bytes
  const firstByteAt = Date.now()
  sink.begin(jsonHead(reply.status, body))
  await sink.write(body)
  return {
    tokens: countedIn(json)?.tokens,
    finish: reasonOf(json.choices[0]?.finish_reason ?? undefined),
    outputCharacters: JSON.stringify(json.choices.map(({ message }) => message ?? null)).length,
    status: reply.status,
    firstByteAt,
    fault: undefined,
  }
}

/** What stands behind the last blank line is half a frame, but for a `[DONE]` that many servers end without one. */
function lastFrame(rest: Buffer): Buffer | undefined {
  return /^data: ?\[DONE\]\s*$/.test(rest.subarray(0, 32).toString('latin1')) ? DONE : undefined
}

const reasonOf = (raw: string | undefined) => (raw === undefined ? undefined : finishReason(raw, false))
