import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request a search provider was sent, whether it was well formed or not. */
export interface SearchRequestSeen {
  method: string
  path: string
  /** Parameters of the URL; one that came twice is a list. */
  query: Record<string, string | string[]>
  headers: IncomingHttpHeaders
  /** The JSON body; undefined when there was none. */
  body: unknown
}

/** What a provider can do instead of answering. */
export type SearchFault =
  | { kind: 'status'; status: number; body?: string }
  | { kind: 'redirect'; to: string }
  /** A 200 with this body, as it is. */
  | { kind: 'body'; body: string }
  /** A well-formed answer, padded to this size. */
  | { kind: 'huge'; bytes: number }
  /** The proper answer, later. */
  | { kind: 'slow'; ms: number }
  /** Nothing at all. */
  | { kind: 'hang' }
  /** Half of the proper answer, and then nothing. */
  | { kind: 'stall' }
  | { kind: 'reset' }

export interface SearchFake<Result> {
  /** What an instance's `api_base` is set to. */
  url: string
  requests: SearchRequestSeen[]
  /** Why requests were refused as the vendor would refuse them. */
  refusals: string[]
  /** Requests being worked on now, and the most there ever were. */
  inFlight: number
  mostInFlight: number
  /** Requests whose client left before its answer was complete. */
  abandoned: number
  /** Sets what every search from now on finds. */
  finds(results: Result[]): void
  /** What befalls the next requests, one each; well-formed ones only. */
  suffers(...faults: SearchFault[]): void
  /** What befalls every request until it is called with nothing. */
  alwaysSuffers(fault?: SearchFault): void
  close(): Promise<void>
}

/** How a vendor judges a request: a refusal in its own words, or the body of its answer. */
export type Vendor<Result> = (
  request: SearchRequestSeen,
  results: Result[],
) => { refused: string; status: number; body: unknown } | { body: object }

/** Headers no call to a search provider may carry: traces of ours are nobody's business there. */
const forbidden = ['traceparent', 'tracestate', 'baggage', 'cookie']

/** A search API on a loopback port, as strict as its vendor's. */
export async function openSearchFake<Result>(vendor: Vendor<Result>): Promise<SearchFake<Result>> {
  let results: Result[] = []
  const faults: SearchFault[] = []
  let standing: SearchFault | undefined

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const seen = await read(request)
    fake.requests.push(seen)
    fake.inFlight += 1
    fake.mostInFlight = Math.max(fake.mostInFlight, fake.inFlight)
    response.once('close', () => {
      fake.inFlight -= 1
      if (!response.writableFinished) fake.abandoned += 1
    })
    const judged = judge(seen, vendor, results)
    if ('refused' in judged) {
      fake.refusals.push(judged.refused)
      send(response, judged.status, JSON.stringify(judged.body))
    } else await suffer(response, faults.shift() ?? standing, judged.body)
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined))
  })
  await new Promise<void>((ready, failed) => server.once('error', failed).listen(0, '127.0.0.1', ready))

  const fake: SearchFake<Result> = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    refusals: [],
    inFlight: 0,
    mostInFlight: 0,
    abandoned: 0,
    finds: (found) => {
      results = found
    },
    suffers: (...next) => void faults.push(...next),
    alwaysSuffers: (fault) => {
      standing = fault
    },
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
  return fake
}

function judge<Result>(seen: SearchRequestSeen, vendor: Vendor<Result>, results: Result[]): ReturnType<Vendor<Result>> {
  const leaked = forbidden.find((name) => name in seen.headers)
  if (leaked) return { refused: `must not carry ${leaked}`, status: 400, body: {} }
  if (seen.headers.accept !== 'application/json') return { refused: 'accept must be JSON', status: 406, body: {} }
  return vendor(seen, results)
}

async function read(request: IncomingMessage): Promise<SearchRequestSeen> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString()
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://fake')
  const query: SearchRequestSeen['query'] = {}
  for (const name of new Set(searchParams.keys())) {
    const values = searchParams.getAll(name)
    query[name] = values.length > 1 ? values : (values[0] ?? '')
  }
  return {
    method: request.method ?? '',
    path: pathname,
    query,
    headers: request.headers,
    body: text === '' ? undefined : JSON.parse(text),
  }
}

async function suffer(response: ServerResponse, fault: SearchFault | undefined, proper: object): Promise<void> {
  const whole = JSON.stringify(proper)
  switch (fault?.kind) {
    case undefined:
      return send(response, 200, whole)
    case 'status':
      return send(response, fault.status, fault.body ?? '{}')
    case 'redirect':
      response.writeHead(302, { location: fault.to }).end()
      return
    case 'body':
      return send(response, 200, fault.body)
    case 'huge':
      return send(response, 200, JSON.stringify({ ...proper, padding: 'x'.repeat(fault.bytes) }))
    case 'slow':
      setTimeout(() => send(response, 200, whole), fault.ms).unref()
      return
    case 'hang':
      return
    case 'stall':
      response.writeHead(200, { 'content-type': 'application/json' }).write(whole.slice(0, whole.length / 2))
      return
    case 'reset':
      response.destroy()
      return
    default:
      return fault satisfies never
  }
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}
