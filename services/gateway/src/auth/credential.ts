import type { IncomingMessage } from 'node:http'
import { Fault } from '@tollgate/contracts'

/** No key is longer; what is, is not worth hashing. */
const MOST_CHARACTERS = 512

/**
 * The key a request came with: the first of `Otari-Key`, `Authorization: Bearer`, `x-api-key` that is there. Only
 * that one counts, so that nobody is authenticated by one key and charged to another. Keys in the URL are refused even
 * beside a good header, since they stand in the logs of everything on the way (BR-123).
 */
export function readCredential(request: IncomingMessage): string {
  if (hasKeyInUrl(request.url ?? ''))
    throw new Fault('invalid_request', 'API keys are not accepted in the URL; send a header')
  const { headers } = request
  const given = bare(single(headers['otari-key'])) || bearer(authorization(request)) || single(headers['x-api-key'])
  if (!given) throw new Fault('unauthorized', 'Missing Otari-Key, Authorization, or x-api-key header')
  if (given.length > MOST_CHARACTERS) throw new Fault('unauthorized', 'Invalid API key')
  return given
}

/** A header sent twice reaches us joined by Node, and is then no key. */
const single = (value: string | string[] | undefined): string =>
  (Array.isArray(value) ? value.join() : (value ?? '')).trim()

/** Node keeps the first `Authorization` and drops others, which would hide that there were two. */
function authorization({ headers, rawHeaders }: IncomingMessage): string {
  const value = headers.authorization
  if (value === undefined) return ''
  let times = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 13 && name.toLowerCase() === 'authorization') times += 1
  }
  if (times > 1) throw new Fault('unauthorized', 'Invalid API key')
  return value
}

const BEARER = /^bearer +/i
const bearer = (value: string): string => (BEARER.test(value) ? bare(value) : '')
const bare = (value: string): string => value.replace(BEARER, '').trim()

function hasKeyInUrl(url: string): boolean {
  const query = url.indexOf('?')
  return (
    query !== -1 &&
    /[?&](?:(?:x[-_])?api[-_]?key|otari[-_]key|access_token|authorization)=|=gw-/i.test(url.slice(query))
  )
}
