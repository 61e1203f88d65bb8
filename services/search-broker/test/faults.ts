import { createServer } from 'node:http'
import type { SearchFault } from '@tollgate/testing'
import { CANARY_KEY } from './engines.ts'

/** Words of a provider that must be told to nobody. */
export const secret = 'upstream-secret-0d5a'

export const status = (code: number): SearchFault => ({
  kind: 'status',
  status: code,
  body: `{"error":"${secret} ${CANARY_KEY}"}`,
})

/** What can befall a request to any provider, and what is told of it (SP-03, SP-04). */
export const faults: [string, SearchFault, { tag: string; httpStatus?: number }][] = [
  ['400', status(400), { tag: 'http_error', httpStatus: 400 }],
  ['401', status(401), { tag: 'authentication', httpStatus: 401 }],
  ['402', status(402), { tag: 'quota', httpStatus: 402 }],
  ['403', status(403), { tag: 'authentication', httpStatus: 403 }],
  ['404', status(404), { tag: 'http_error', httpStatus: 404 }],
  ['429', status(429), { tag: 'rate_limited', httpStatus: 429 }],
  ['500', status(500), { tag: 'http_error', httpStatus: 500 }],
  ['503 without JSON', { kind: 'status', status: 503, body: secret }, { tag: 'http_error', httpStatus: 503 }],
  ['a redirect', { kind: 'redirect', to: '/elsewhere' }, { tag: 'http_error', httpStatus: 302 }],
  [
    'broken JSON',
    { kind: 'body', body: `{"results":[{"title":"${secret}` },
    { tag: 'invalid_response', httpStatus: 200 },
  ],
  [
    'JSON of another shape',
    { kind: 'body', body: `{"data":"${secret}"}` },
    { tag: 'invalid_response', httpStatus: 200 },
  ],
  ['null', { kind: 'body', body: 'null' }, { tag: 'invalid_response', httpStatus: 200 }],
  ['an empty body', { kind: 'body', body: '' }, { tag: 'invalid_response', httpStatus: 200 }],
  ['a 20 MiB body', { kind: 'huge', bytes: 20 * 1024 * 1024 }, { tag: 'invalid_response', httpStatus: 200 }],
  ['a body just over 5 MiB', { kind: 'huge', bytes: 5 * 1024 * 1024 }, { tag: 'invalid_response', httpStatus: 200 }],
  ['a connection reset', { kind: 'reset' }, { tag: 'network' }],
  ['silence', { kind: 'hang' }, { tag: 'timeout' }],
  ['half an answer', { kind: 'stall' }, { tag: 'timeout' }],
]

/** An address where nobody listens. */
export async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  const address = server.address()
  await new Promise((done) => server.close(done))
  return typeof address === 'object' && address ? address.port : 0
}
