import type { JsonObject, Turn } from '../../conversation/turn.ts'
import type { Identity } from '../../dialects/responses/envelope.ts'
import { gatewayItems } from '../../dialects/responses/gateway-items.ts'
import { mint } from '../../dialects/responses/ids.ts'
import { openOutput } from '../../dialects/responses/output.ts'
import { renderResponse } from '../../dialects/responses/render.ts'
import { responsesStream, STREAM_DONE, STREAM_FAILED } from '../../dialects/responses/stream.ts'
import type { Speech } from '../convert.ts'
import { type ByteSink, type Forwarded, jsonHead } from '../forward.ts'
import { forwardReply } from '../forward-reply.ts'
import type { LastWords } from '../forward-stream.ts'
import { parseJson } from '../reply.ts'
import type { UpstreamReply } from '../upstream.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { finishReason, responsesReader } from './events.ts'
import { streamed, whole } from './reply.ts'
import { countedIn } from './usage.ts'
import { responsesWatch } from './watch.ts'
import { responseObject } from './wire.ts'

const words: LastWords = {
  done: Buffer.from(STREAM_DONE),
  failed: Buffer.from(STREAM_FAILED),
  lastFrame: () => undefined,
  owed: Buffer.alloc(0),
}

/** Answers that are forwarded are kept nowhere. */
const fresh = (): Identity => ({
  id: mint('response'),
  createdAt: Math.floor(Date.now() / 1_000),
  kept: false,
  previous: undefined,
})
const noGatewayItems = (turn: Turn) => openOutput(gatewayItems(turn, new Set(), ''), [])
const speech: Speech = {
  writer: (turn) => responsesStream(fresh(), turn, noGatewayItems(turn)),
  render: (answer, turn) => renderResponse(answer, fresh(), turn, noGatewayItems(turn)),
}

export const forwardResponses = forwardReply({
  watch: (origin, { model }) => responsesWatch(origin, model),
  words,
  forwardWhole,
  reader: responsesReader,
  streamed,
  whole,
  speech,
})

async function forwardWhole(reply: UpstreamReply, sink: ByteSink, origin: Origin, { model }: Turn): Promise<Forwarded> {
  const json = parseJson((await reply.bytes()).toString('utf8'), origin)
  const read = responseObject.safeParse(json)
  if (read.data?.error) throw faultOfFrame(origin, { error: read.data.error })
  if (!read.success || !read.data.output) throw brokenAnswer('unreadable', origin, new Error('no response'))
  const { output, status, incomplete_details, usage } = read.data
  if (status === 'failed' || status === 'cancelled') throw brokenAnswer('cut', origin)
  const body = Buffer.from(JSON.stringify({ ...(json as JsonObject), model }))
  const firstByteAt = Date.now()
  sink.begin(jsonHead(reply.status, body))
  await sink.write(body)
  const why = status === 'incomplete' ? (incomplete_details?.reason ?? status) : undefined
  const called = output.some(({ type }) => type === 'function_call')
  return {
    tokens: countedIn(usage)?.tokens,
    finish: finishReason(why, called),
    outputCharacters: JSON.stringify(output).length,
    status: reply.status,
    firstByteAt,
    fault: undefined,
  }
}
