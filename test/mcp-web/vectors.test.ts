import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { describe, expect, test } from 'vitest'
import { hopVectors } from '../../packages/http/test/hop-vectors.ts'
import { failure } from './strict.ts'
import { sharedWorld } from './world.ts'

const world = sharedWorld()
/** The whole text of a failure, so that it can hold nothing of where the request was to go (VB-6). */
const told = {
  refuse: 'address not allowed: only public http and https URLs are fetched',
  error: 'could not resolve the host name',
}

/** A client for each list of exceptions; most vectors have none. */
const clients = new Map<string, Promise<Client>>()
function clientFor(allowedHosts: string[]): Promise<Client> {
  const key = allowedHosts.join()
  const client = clients.get(key) ?? world().connect({ allowedHosts, operationTimeoutMs: 5_000 })
  clients.set(key, client)
  return client
}

/** What is let through is dialled, once; whether anybody is there is another matter. */
describe.each(['fetch_webpage', 'fetch_image'])('%s', (tool) => {
  test.each(hopVectors)('WM-20 WM-81 WM-87 VB-3 %s %s: %s, %s', async (_id, url, verdict, _why, given = {}) => {
    const { dns, dialer, answering } = world()
    // kept pages are for those who may read them: here each is to be asked for
    answering((_request, response) => response.writeHead(200, { 'cache-control': 'no-store' }).end())
    Object.assign(dns.answers, given.dns)
    const client = await clientFor(given.allow ?? [])
    const result = await client.callTool({ name: tool, arguments: { url } })
    for (const name of Object.keys(given.dns ?? {})) delete dns.answers[name]

    if (verdict !== 'accept') expect(failure.parse(result).content[0].text).toBe(`${tool} failed: ${told[verdict]}`)
    expect(dialer.dialed).toHaveLength(verdict === 'accept' ? 1 : 0)
    expect(dns.lookups.length).toBeLessThanOrEqual(1)
  })
})
