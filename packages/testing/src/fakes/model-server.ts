import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FilesDoor } from './model-files.ts'
import type { Delivery, FakeJson, ModelScript, RawAnswer, ScriptedAnswer } from './model-script.ts'

/** A refusal in the vendor's own form. */
export interface Refusal {
  status: number
  message: string
  body: FakeJson
}

/** What differs between vendors. */
export interface FakeVendor {
  path: string | RegExp
  /** Judges a request as the vendor would; undefined when it is in order. */
  refuse(body: FakeJson, headers: IncomingMessage['headers']): Refusal | undefined
  render(answer: ScriptedAnswer, body: FakeJson, round: number, path: string): Required<RawAnswer>
  /** Where it counts the tokens of a request, and how; it is judged like one that is answered. */
  counts?: { path: string; count(body: FakeJson): FakeJson; judged(body: FakeJson): FakeJson }
  /** Its files API. */
  files?: FilesDoor
}

export interface RecordedRequest {
  headers: IncomingMessage['headers']
  /** The body's text, byte for byte. */
  text: string
  body: FakeJson
}

export interface FakeModel {
  /** `http://127.0.0.1:port` */
  url: string
  requests: RecordedRequest[]
  /** Why requests were refused; a test of proper requests expects none. */
  refusals: string[]
  /** Connections that the client ended before its answer was whole. */
  aborted(): number
  close(): Promise<void>
}

/** A vendor's HTTP server with a script for a model: it records every request, and refuses those the vendor would. */
export async function startFakeModel(vendor: FakeVendor, script: ModelScript): Promise<FakeModel> {
  const requests: RecordedRequest[] = []
  const refusals: string[] = []
  let aborted = 0

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await readBytes(request)
    const path = new URL(request.url ?? '/', 'http://fake').pathname
    const { method = '', headers } = request
    const ofFiles = await vendor.files?.answer({ method, path, headers, body: bytes })
    if (ofFiles) return send(response, ofFiles, ofFiles)
    const text = bytes.toString('utf8')
    const counts = path === vendor.counts?.path ? vendor.counts : undefined
    if (request.method !== 'POST' || (!isPath(vendor.path, path) && !counts))
      return send(response, notFound(`${request.method} ${path}`))
    const body = JSON.parse(text) as FakeJson
    const round = requests.push({ headers: request.headers, text, body }) - 1
    response.once('close', () => {
      if (!response.writableFinished) aborted++
    })
    const refusal = vendor.refuse(counts ? counts.judged(body) : body, request.headers)
    if (refusal) {
      refusals.push(refusal.message)
      return send(response, json(refusal.status, refusal.body))
    }
    if (counts) return send(response, json(200, counts.count(body)))
    const reply = typeof script === 'function' ? script(body, round) : script[round]
    if (!reply) {
      refusals.push(`no round ${round + 1} in the script`)
      return send(response, json(500, { error: { message: 'the script is over' } }))
    }
    await send(
      response,
      'says' in reply ? vendor.render(reply, body, round, path) : { ...json(200, {}), ...reply },
      reply,
    )
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    refusals,
    aborted: () => aborted,
    async close() {
      const closed = new Promise((done) => server.close(done))
      server.closeAllConnections()
      await closed
    },
  }
}

const isPath = (expected: string | RegExp, path: string): boolean =>
  typeof expected === 'string' ? expected === path : expected.test(path)

async function send(response: ServerResponse, answer: RawAnswer, delivery: Delivery = {}): Promise<void> {
  if (delivery.delayMs) await sleep(delivery.delayMs)
  if (response.destroyed) return
  response.writeHead(answer.status ?? 200, answer.headers)
  const bytes = Buffer.from(answer.body)
  const stop = delivery.cutAfterBytes ?? delivery.stallAfterBytes ?? bytes.length
  if (delivery.byteByByte) await writeBytes(response, bytes.subarray(0, stop))
  else if (stop > 0) response.write(bytes.subarray(0, stop))
  else response.flushHeaders()
  if (delivery.stallAfterBytes !== undefined) return
  if (delivery.cutAfterBytes === undefined) response.end()
  else setTimeout(() => response.destroy(), 20).unref() // so that what was written is on its way first
}

async function writeBytes(response: ServerResponse, bytes: Buffer): Promise<void> {
  response.socket?.setNoDelay(true)
  for (const byte of bytes) {
    if (response.destroyed) return
    if (!response.write(Buffer.of(byte))) await new Promise((drained) => response.once('drain', drained))
    await new Promise((flushed) => setImmediate(flushed))
  }
}

export const json = (status: number, body: FakeJson): Required<RawAnswer> => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

export const eventStream = (body: string): Required<RawAnswer> => ({
  status: 200,
  headers: { 'content-type': 'text/event-stream' },
  body,
})

const notFound = (what: string): RawAnswer => ({
  status: 404,
  headers: { 'content-type': 'text/plain' },
  body: `no ${what}`,
})

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts)
}
