import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dnsStub, loopbackDialer } from '@tollgate/testing'
import { expect, onTestFinished, test } from 'vitest'
import { AnswerTooLarge, ConnectFailure, openGuard, openPinnedClient } from '../src/index.ts'

const PUBLIC = '93.184.216.34'
const never = new AbortController().signal

async function serving(listener: RequestListener, maxBytes = 1_000) {
  const server = createServer(listener)
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const names = dnsStub({ 'site.test': [[PUBLIC], ['10.0.0.1']] as unknown as string[], 'inner.test': ['10.0.0.1'] })
  const dialer = loopbackDialer({ [PUBLIC]: (server.address() as AddressInfo).port })
  const client = openPinnedClient({ judge: openGuard(names.resolve), dialer, maxBytes })
  onTestFinished(async () => {
    client.close()
    await new Promise((closed) => {
      server.close(closed)
      server.closeAllConnections()
    })
  })
  return { client, dialer, names }
}

test('judges an origin once, pins it to that address and keeps its connections', async () => {
  const asked: unknown[] = []
  const { client, dialer, names } = await serving((request, response) => {
    asked.push([request.method, request.url, request.headers])
    response.writeHead(200, { 'x-said': ['a', 'b'] }).end('fine')
  })
  expect(await client.pin('http://site.test/', never)).toMatchObject({ ok: true, hop: { address: PUBLIC } })
  const paths = ['/one?q=1', '/two', '/three', '/four', '/five']
  for (const path of paths) {
    const answer = await client.fetch(`http://site.test${path}`, {
      method: 'POST',
      body: 'x',
      headers: { 'X-Own': '1' },
    })
    expect([answer.status, answer.headers.get('x-said'), await answer.text()]).toEqual([200, 'a, b', 'fine'])
  }
  expect(names.lookups).toEqual(['site.test'])
  expect(dialer.dialed.length).toBeLessThanOrEqual(2)
  expect(new Set(dialer.dialed.map(({ address, port }) => `${address}:${port}`))).toEqual(new Set([`${PUBLIC}:80`]))
  // nothing is sent that was not given
  const headers = { host: 'site.test', connection: 'keep-alive', 'content-length': '1', 'x-own': '1' }
  expect(asked).toEqual(paths.map((path) => ['POST', path, headers]))
})

test.each([
  'http://inner.test/',
  'http://127.0.0.1/',
  'http://none.test/',
  'ftp://site.test/',
  'http://u:p@site.test/',
])('connects to nothing for %s', async (url) => {
  const { client, dialer } = await serving((_request, response) => response.end())
  await expect(client.fetch(url)).rejects.toThrow(ConnectFailure)
  expect(dialer.dialed).toEqual([])
})

test('ends an answer that is larger than it may be while it still comes', async () => {
  const { client } = await serving((_request, response) => {
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(300)));
    }
    response.on('drain', more)
    more()
  })
  const answer = await client.fetch('http://site.test/')
  await expect(answer.text()).rejects.toThrow(AnswerTooLarge)
})

test('gives an answer of just that size, a redirect and one without a body as they are', async () => {
  const { client } = await serving((request, response) => {
    if (request.url === '/moved') response.writeHead(307, { location: 'http://inner.test/' }).end()
    else if (request.url === '/none') response.writeHead(204).end()
    else response.end('x'.repeat(1_000))
  })
  expect(await (await client.fetch('http://site.test/')).text()).toHaveLength(1_000)
  const moved = await client.fetch('http://site.test/moved')
  expect([moved.status, moved.headers.get('location')]).toEqual([307, 'http://inner.test/'])
  const none = await client.fetch('http://site.test/none')
  expect([none.status, none.body]).toEqual([204, null])
})

test('refuses a coding that was not asked for', async () => {
  const { client } = await serving((_request, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
  )
  await expect(client.fetch('http://site.test/')).rejects.toThrow('content coding')
})

test('ends what is under way when its caller leaves, and when it is closed', async () => {
  let open = 0
  const { client } = await serving((_request, response) => {
    open += 1
    response.on('close', () => (open -= 1))
    response.write('x')
  })
  const left = new AbortController()
  const body = (await client.fetch('http://site.test/', { signal: left.signal })).text()
  left.abort(new Error('left'))
  await expect(body).rejects.toThrow()
  await expect.poll(() => open).toBe(0)

  const cut = (await client.fetch('http://site.test/')).text()
  client.close()
  await expect(cut).rejects.toThrow()
  await expect.poll(() => open).toBe(0)
})
