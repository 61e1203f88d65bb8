import type { Log } from '@tollgate/telemetry'
import type { ModelEvent } from '../conversation/events.ts'
import type { Tell } from '../conversation/tell.ts'
import type { ModelRequest, Turn } from '../conversation/turn.ts'
import { forwardConverted, type Speech } from './convert.ts'
import type { ByteSink, Forwarded } from './forward.ts'
import { forwardStream, type LastWords, type Watch } from './forward-stream.ts'
import { isStream } from './reply.ts'
import type { UpstreamReply } from './upstream.ts'
import type { Origin } from './upstream-fault.ts'

/** A wire that is a client dialect as well. */
export interface SharedWire<Reader> {
  watch(origin: Origin, turn: Turn): Watch
  words: LastWords
  forwardWhole(reply: UpstreamReply, sink: ByteSink, origin: Origin, turn: Turn): Promise<Forwarded>
  /** How its answers are read, and said again, where one does not come as it was asked for. */
  reader(origin: Origin, log: Log): Reader
  streamed(reply: UpstreamReply, reader: Reader, origin: Origin, tell: Tell<ModelEvent>): Promise<void>
  whole(reply: UpstreamReply, reader: Reader, origin: Origin, tell: Tell<ModelEvent>): Promise<void>
  speech: Speech
}

/** Passes an upstream's answer to a client that speaks the same dialect. */
export const forwardReply =
  <Reader>({ watch, words, forwardWhole, reader, streamed, whole, speech }: SharedWire<Reader>) =>
  (
    reply: UpstreamReply,
    { turn, stream: asked }: ModelRequest,
    sink: ByteSink,
    origin: Origin,
    log: Log,
  ): Promise<Forwarded> => {
    if (isStream(reply, asked) !== turn.stream) {
      const read = (tell: Tell<ModelEvent>) =>
        (turn.stream ? whole : streamed)(reply, reader(origin, log), origin, tell)
      return forwardConverted(read, turn, reply.status, sink, speech)
    }
    return turn.stream
      ? forwardStream(reply, sink, origin, watch(origin, turn), words)
      : forwardWhole(reply, sink, origin, turn)
  }
