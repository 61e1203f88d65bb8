import type { Fault } from '@tollgate/contracts'
import type { Admission } from '../loop/admission.ts'
import { endingOf, faultOf } from '../loop/answering.ts'
import type { Walk } from '../loop/walk.ts'
import type { ByteSink } from '../models/forward.ts'
import { canForward } from '../models/provider.ts'
import { type Exchange, logBreak } from './answer.ts'
import { type EventStream, openEventStream } from './event-stream.ts'
import type { ModelRequest } from './turn.ts'

/**
 * The fast lane: an upstream's bytes as they come. The end of a stream, and a whole body, wait until the request is
 * settled. False: the candidate gave no answer, and it is the next one's turn.
 */
export async function forwardAnswer(exchange: Exchange, { walk, usage, tally }: Admission): Promise<boolean> {
  const { needs, request } = exchange
  const { signal, deadline } = request
  const { provider, model, plan } = walk.current
  if (!canForward(provider, plan.turn)) throw new Error(`${provider.name} has no fast lane for this turn`)
  const { turn, messages, tools, toolChoice } = plan
  const { parallelToolCalls, stream } = turn
  const asked: ModelRequest = { turn, model, messages, tools, toolChoice, parallelToolCalls, stream }
  const out = openSink(exchange, walk.began)
  /** Set when the provider's part has told the client itself. */
  let told: Fault | undefined

  const attempt = walk.start()
  walk.asking()
  usage.beginRound(asked)
  try {
    const forwarded = await provider.forward(asked, out, { signal: attempt.signal, deadline })
    // an answer that was broken off before it said why it ended was counted in part at most (BR-139)
    const whole = forwarded.fault === undefined || forwarded.finish !== undefined
    usage.hearForwarded(forwarded.tokens, forwarded.outputCharacters, whole)
    told = forwarded.fault?.failure === 'cancelled' ? undefined : forwarded.fault
    if (forwarded.fault) throw forwarded.fault
    usage.endRound()
    walk.answered()
    await tally.settle({ status: 'success' })
    await out.end()
    return true
  } catch (thrown) {
    const last = whyLast(walk, thrown)
    if (last === undefined) return false
    const fault = faultOf(last, signal)
    await tally.settle(endingOf(fault)).catch((unsettled: unknown) => {
      needs.log.error({ request: request.tenancy.request, err: unsettled }, 'a request could not be settled')
    })
    if (!out.begun()) throw fault
    logBreak(needs.log, request, fault)
    out.breakOff(told !== undefined)
    return true
  } finally {
    walk.over()
  }
}

/** What ends the request; undefined where another candidate is asked. */
function whyLast(walk: Walk, thrown: unknown): unknown {
  try {
    walk.failed(thrown)
    return undefined
  } catch (last) {
    return last
  }
}

interface HeldSink extends ByteSink {
  /** True once the client has a status. */
  begun(): boolean
  /** Sends what was held back. */
  end(): Promise<void>
  breakOff(told: boolean): void
}

function openSink({ needs, dialect, reply, request }: Exchange, began: () => void): HeldSink {
  const writer = dialect.writer(request.turn)
  const last = Buffer.from(writer.end())
  const held: Uint8Array[] = []
  let head: Parameters<ByteSink['begin']>[0] | undefined
  let stream: EventStream | undefined

  return {
    begin(begun) {
      head = begun
      began()
      if (!begun.headers['content-type']?.startsWith('text/event-stream')) return
      const everyMs = needs.settings.streamingKeepaliveIntervalMs
      stream = openEventStream(reply, { keepalive: writer.keepalive, everyMs, signal: request.signal })
    },
    write(bytes) {
      if (stream && !last.equals(bytes)) return stream.write(bytes)
      held.push(bytes)
      return undefined
    },
    begun: () => stream !== undefined,
    async end() {
      if (stream) return stream.end(Buffer.concat(held))
      if (head === undefined) throw new Error('an answer ended that never began')
      void reply.code(head.status).headers(head.headers).send(Buffer.concat(held))
    },
    breakOff: (told) => stream?.end(told ? '' : writer.fail()),
  }
}
