import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { endUnread } from '../src/index.ts'

/** More than a kernel takes from a server whose client reads nothing. */
const LARGE = Buffer.alloc(48 * 1024 * 1024, 'x')
const UNREAD_MS = 600

async function serve(answer: (response: ServerResponse) => void) {
  const server = createServer((_request, response) => answer(response))
  endUnread(server, UNREAD_MS)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  /** A client that has asked and reads nothing yet; `gone` once the server has no part of its connection any more. */
  const ask = async (requests = 1) => {
    const connected = once(server, 'connection')
    const client = connect(port, '127.0.0.1').pause()
    client.on('error', () => {}) // a reset is what some wait for
    onTestFinished(() => void client.destroy())
    client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(requests))
    const [served] = (await connected) as [Socket]
    return { client, gone: () => served.destroyed }
  }
  return { server, ask }
}

const ways: [string, (response: ServerResponse) => void][] = [
  ['in one piece', (response) => response.end(LARGE)],
  [
    'in many pieces',
    (response) => {
      for (let at = 0; at < LARGE.length; at += 65_536) response.write(LARGE.subarray(at, at + 65_536))
      response.end()
    },
  ],
]

describe.each(ways)('an answer that was written %s', (_how, write) => {
  test('and of which nothing is taken costs its client the connection, whatever that sends', async () => {
    const { ask } = await serve(write)
    const { client, gone } = await ask()
    const sends = setInterval(() => client.write('\r\n'), UNREAD_MS / 10)
    await expect.poll(gone, { timeout: 10_000 }).toBe(true)
    clearInterval(sends)
  })

  test('is waited for while some of it is taken now and then, and is whole in the end', async () => {
    const { ask } = await serve(write)
    const { client, gone } = await ask()
    const began = performance.now()
    let taken = 0
    let next = 0
    client.on('data', (piece) => {
      taken += piece.length
      if (taken >= next) client.pause()
    })
    while (taken < LARGE.length) {
      // more than the system holds of it, so that the server has its part of this too
      next = Math.min(taken + 8 * 1024 * 1024, LARGE.length)
      client.resume()
      await expect.poll(() => taken, { timeout: 10_000, interval: 5 }).toBeGreaterThanOrEqual(next)
      await sleep(UNREAD_MS / 2)
    }
    expect(taken).toBeGreaterThanOrEqual(LARGE.length)
    expect(performance.now() - began).toBeGreaterThan(UNREAD_MS)
    expect(gone()).toBe(false)
  })
})

test('neither an answer that is not at its end has such a bound, nor a connection that is idle after one', async () => {
  const responses: ServerResponse[] = []
  const { ask } = await serve((response) => {
    responses.push(response)
    if (responses.length === 1) response.end(LARGE)
    else response.write(LARGE)
  })
  const [first, idle] = [await ask(2), await ask(0)]
  first.client.resume()
  await expect.poll(() => responses[0]?.writableFinished, { timeout: 10_000 }).toBe(true)
  first.client.pause()
  const other = await serve((response) => response.end(LARGE))
  const unread = await other.ask()
  await expect.poll(unread.gone, { timeout: 10_000 }).toBe(true)
  expect([first.gone(), idle.gone(), responses.length]).toEqual([false, false, 2])
})
