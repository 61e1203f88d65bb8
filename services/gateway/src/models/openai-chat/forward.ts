import { Fault } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { ModelRequest } from '../../conversation/turn.ts'
import { STREAM_DONE, STREAM_FAILED } from '../../dialects/chat/stream.ts'
import { type ByteSink, eventStreamHead, type Forwarded, jsonHead } from '../forward.ts'
import { isStream, parseJson } from '../reply.ts'
import type { UpstreamReply } from '../upstream.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { forwardConverted } from './convert.ts'
import { finishReason } from './events.ts'
import { frameCutter } from './frames.ts'
import { chatMender, mendable } from './mend.ts'
import { countedIn } from './usage.ts'
import { chatWatch, type Watch } from './watch.ts'

/** Frames held until the answer begins: a server's own pings, filter results and the like. */
const MOST_PRELUDE_BYTES = 1024 * 1024

const DONE = Buffer.from(STREAM_DONE)
const FAILED = Buffer.from(STREAM_FAILED)

/** Passes an upstream's answer to a client that speaks the same dialect. */
export function forwardChat(
  reply: UpstreamReply,
  request: ModelRequest,
  sink: ByteSink,
  origin: Origin,
  log: Log,
): Promise<Forwarded> {
  const { stream, includeUsage } = request.turn
  if (isStream(reply, request.stream) !== stream) return forwardConverted(reply, request, sink, origin, log)
  return stream ? forwardStream(reply, sink, origin, includeUsage) : forwardWhole(reply, sink, origin)
}

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

async function forwardStream(
  reply: UpstreamReply,
  sink: ByteSink,
  origin: Origin,
  showUsage: boolean,
): Promise<Forwarded> {
  const cutter = frameCutter(origin)
  const watch = chatWatch(origin, showUsage)
  const chunks = reply.chunks()
  const out = opening(sink, reply.status)
  let fault: Fault | undefined
  try {
    for (;;) {
      const { value: chunk, done } = await chunks.next()
      const frames = done ? lastFrame(cutter.rest()) : cutter.push(chunk)
      if (frames) {
        const seen = watch.look(frames)
        await out.write(seen.through, watch.began(), origin)
        if (seen.fault) throw seen.fault
      }
      if (!watch.done()) {
        if (!done) continue
        if (!watch.began()) throw brokenAnswer('empty', origin)
        if (watch.finish() === undefined) throw brokenAnswer('cut', origin)
      }
      await sink.write(DONE)
      break
    }
  } catch (error) {
    fault = Fault.from(error)
    if (out.firstByteAt() === undefined) throw fault
    if (fault.failure !== 'cancelled') await sink.write(FAILED)
  } finally {
    // the client has its last byte; what is left of the body is nobody's to wait for, and settling never rejects
    if (watch.done() && !fault) void reply.settle()
    else await chunks.return()
  }
  return summary(watch, reply.status, out.firstByteAt() ?? Date.now(), fault)
}

/** Holds frames back until the answer has begun, so that until then a failure can have a status of its own (BR-031). */
function opening(sink: ByteSink, status: number) {
  let prelude: Buffer[] = []
  let preludeBytes = 0
  let firstByteAt: number | undefined
  return {
    firstByteAt: () => firstByteAt,
    async write(frames: Buffer[], began: boolean, origin: Origin): Promise<void> {
      if (!began) {
        prelude.push(...frames)
        for (const frame of frames) preludeBytes += frame.length
        if (preludeBytes > MOST_PRELUDE_BYTES) throw brokenAnswer('unreadable', origin)
        return
      }
      if (firstByteAt === undefined) {
        firstByteAt = Date.now()
        sink.begin(eventStreamHead(status))
        frames = [...prelude, ...frames]
        prelude = []
      }
      for (const frame of frames) {
        const full = sink.write(frame)
        if (full) await full
      }
    },
  }
}

/** What stands behind the last blank line is half a frame, but for a `[DONE]` that many servers end without one. */
function lastFrame(rest: Buffer): Buffer | undefined {
  return /^data: ?\[DONE\]\s*$/.test(rest.subarray(0, 32).toString('latin1')) ? DONE : undefined
}

function summary(watch: Watch, status: number, firstByteAt: number, fault: Fault | undefined): Forwarded {
  return {
    tokens: watch.tokens(),
    finish: reasonOf(watch.finish()),
    outputCharacters: watch.outputCharacters(),
    status,
    firstByteAt,
    fault,
  }
}

const reasonOf = (raw: string | undefined) => (raw === undefined ? undefined : finishReason(raw, false))
