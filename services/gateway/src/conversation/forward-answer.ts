import type { Fault } from '@tollgate/contracts'
import type { Admission } from '../loop/admission.ts'
import { endingOf, faultOf } from '../loop/answering.ts'
import type { ByteSink } from '../models/forward.ts'
import { canForward } from '../models/provider.ts'
import { type Exchange, logBreak } from './answer.ts'
import { type EventStream, openEventStream } from './event-stream.ts'
import type { ModelRequest } from './turn.ts'

/**
 * The fast lane: an upstream's bytes as they come. The end of a stream, and a whole body, wait until the request is
 * settled.
 */
export async function forwardAnswer(exchange: Exchange, { first, usage, tally }: Admission): Promise<void> {
  const { needs, request } = exchange
  const { signal, deadline } = request
  const { provider, model, plan } = first
  if (!canForward(provider, plan.turn)) throw new Error(`${provider.name} has no fast lane for this turn`)
  const { turn, messages, tools, toolChoice } = plan
  const { parallelToolCalls, stream } = turn
  const asked: ModelRequest = { turn, model, messages, tools, toolChoice, parallelToolCalls, stream }
  const out = openSink(exchange)
  /** Set when the provider's part has told the client itself. */
  let told: Fault | undefined

  usage.beginRound(asked)
  try {
    const forwarded = await provider.forward(asked, out, { signal, deadline })
    usage.hearForwarded(forwarded.tokens, forwarded.outputCharacters)
    told = forwarded.fault?.failure === 'cancelled' ? undefined : forwarded.fault
    if (forwarded.fault) throw forwarded.fault
    usage.endRound()
    await tally.settle({ status: 'success' })
    await out.end()
  } catch (thrown) {
    const fault = faultOf(thrown, signal)
    await tally.settle(endingOf(fault)).catch((unsettled: unknown) => {
      needs.log.error({ request: request.tenancy.request, err: unsettled }, 'a request could not be settled')
    })
    if (!out.begun()) throw fault
    logBreak(needs.log, request, fault)
    out.breakOff(told !== undefined)
  }
}

interface HeldSink extends ByteSink {
  /** True once the client has a status. */
  begun(): boolean
  /** Sends what was held back. */
  end(): Promise<void>
  breakOff(told: boolean): void
}

function openSink({ needs, dialect, reply, request }: Exchange): HeldSink {
  const writer = dialect.writer(request.turn)
  const last = Buffer.from(writer.end())
  const held: Uint8Array[] = []
  let head: Parameters<ByteSink['begin']>[0] | undefined
  let stream: EventStream | undefined

  return {
    begin(begun) {
      head = begun
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
