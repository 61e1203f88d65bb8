import { type Msg, nanos } from 'nats'
import type { Link } from './nats-link.ts'
import type { Place } from './nats-streams.ts'

/** A message of a stream, handed to us until we say what became of it. */
export interface Delivery {
  headers: Msg['headers']
  data: Uint8Array
  /** How often it has been handed out, this time included. */
  count: number
  /** Its place in the stream. */
  sequence: number
  /** How long ago it was stored, by the server's clock. */
  waitedMs: number
  /** Messages of the stream that nobody had been handed when this one was. */
  waiting: number
  /** It is still being worked on: it must not be handed to somebody else yet. */
  working(): void
  ack(): void
  /** It is to be handed out again, after a while if one is given. */
  nak(afterMs?: number): void
  /** It is not to be handed out again. */
  term(): void
}

export function openDelivery(link: Link, place: Place, { headers, data, reply = '' }: Msg): Delivery {
  const numbers = numbersOf(reply)
  const { generation } = link
  const { made } = place

  /** A stream that was made anew since, in a server that lost it, has other messages under the same numbers. */
  const sayIfSame = async (word: string) => {
    await place.ready()
    if (place.made === made) link.publish(reply, word)
  }
  const say = (word: string): void => {
    if (link.generation === generation) link.publish(reply, word)
    else sayIfSame(word).catch(() => undefined) // the stream is not there, nor what was to be said of it
  }
  return {
    headers,
    data,
    ...numbers,
    working: () => say('+WPI'),
    ack: () => say('+ACK'),
    nak: (afterMs) => say(afterMs === undefined ? '-NAK' : `-NAK ${JSON.stringify({ delay: nanos(afterMs) })}`),
    term: () => say('+TERM'),
  }
}

/**
 * What JetStream says in the subject to answer on:
 * `$JS.ACK.<stream>.<consumer>.<count>.<sequence>.<consumer sequence>.<nanoseconds>.<waiting>`, with a domain and an account
 * before the stream where the server knows of domains (ADR-15).
 */
function numbersOf(reply: string): Pick<Delivery, 'count' | 'sequence' | 'waitedMs' | 'waiting'> {
  const tokens = reply.split('.')
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK' || tokens.length < 9) throw new Error('a message is not from a stream')
  const [count, sequence, , stored, waiting] = tokens.slice(tokens.length === 9 ? 4 : 6)
  return {
    count: Number(count),
    sequence: Number(sequence),
    waitedMs: Math.max(0, Date.now() - Number(stored) / 1e6),
    waiting: Number(waiting),
  }
}
