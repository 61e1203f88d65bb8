import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Failure } from './failure.ts'

/** Server-sent events of one call: output as it is written, then one last event. */
export interface EventStream {
  /** Whether the head is out: from then on a failure is an event. */
  readonly begun: boolean
  begin(): void
  output(stream: OutputName, bytes: Buffer): void
  /** Sends what of the texts was not sent yet, so that all `output` events together are the result's. */
  result(body: object, texts: Record<OutputName, string>): void
  error(failure: Failure): void
  /** Nothing more is sent by itself; for a call that never began. */
  stop(): void
}

export type OutputName = 'stdout' | 'stderr'
const names: OutputName[] = ['stdout', 'stderr']

export const wantsEvents = ({ headers }: FastifyRequest): boolean =>
  /\btext\/event-stream\b/i.test(headers.accept ?? '')

/**
 * While a client does not read, what is written for it is held as bytes, of which there are never more than a call's output
 * is cut at; the program goes on.
 */
export function openEventStream(reply: FastifyReply, keepAliveMs: number): EventStream {
  const { raw } = reply
  const streams = { stdout: openText(), stderr: openText() }
  let begun = false
  let isFull = false

  const begin = () => {
    if (begun) return
    begun = true
    reply.hijack()
    raw.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    raw.flushHeaders()
  }
  const send = (event: string, data: object) => {
    begin()
    isFull = !raw.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  }
  const say = (stream: OutputName, text: string) => {
    if (text !== '') send('output', { stream, text })
  }
  const flush = () => {
    for (const name of names) if (!isFull && streams[name].isWaiting()) say(name, streams[name].take())
  }
  const alive = setInterval(() => {
    begin()
    if (!isFull) raw.write(': the call goes on\n\n')
  }, keepAliveMs)
  const end = (event: string, data: object) => {
    clearInterval(alive)
    send(event, data)
    raw.end()
  }
  raw.on('drain', () => {
    isFull = false
    flush()
  })
  raw.once('close', () => clearInterval(alive))

  return {
    get begun() {
      return begun
    },
    begin,
    output(stream, bytes) {
      streams[stream].add(bytes)
      flush()
    },
    result(body, texts) {
      for (const name of names) {
        say(name, streams[name].take())
        say(name, streams[name].rest(texts[name]))
      }
      end('result', body)
    },
    error: (failure) => end('error', failure),
    stop: () => clearInterval(alive),
  }
}

/** Bytes that become text in whole characters, wherever they were cut. */
function openText() {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let waiting: Buffer[] = []
  let taken = ''
  return {
    add: (bytes: Buffer) => void waiting.push(bytes),
    isWaiting: () => waiting.length > 0,
    take() {
      const text = decoder.decode(Buffer.concat(waiting), { stream: true })
      waiting = []
      taken += text
      return text
    },
    /** What `whole` has beyond what was taken. */
    rest: (whole: string) => (whole.startsWith(taken) ? whole.slice(taken.length) : ''),
  }
}
