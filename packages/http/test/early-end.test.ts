import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const BODY = Buffer.alloc(300 * 1024, 'x')
const chunked = Buffer.concat([Buffer.from(`${BODY.length.toString(16)}\r\n`), BODY, Buffer.from('\r\n0\r\n\r\n')])
const framings = {
  'its length told': { head: `content-length: ${BODY.length}\r\nconnection: close\r\n`, body: BODY },
  'its length told, on a connection to be kept': { head: `content-length: ${BODY.length}\r\n`, body: BODY },
  chunks: { head: 'transfer-encoding: chunked\r\nconnection: close\r\n', body: chunked },
  'chunks, on a connection to be kept': { head: 'transfer-encoding: chunked\r\n', body: chunked },
  'the end of the connection': { head: 'connection: close\r\n', body: BODY },
}
const short = {
  'its length told': { head: `content-length: ${BODY.length + 1}\r\nconnection: close\r\n`, body: BODY },
  chunks: { head: 'transfer-encoding: chunked\r\nconnection: close\r\n', body: chunked.subarray(0, -5) },
}

/** Servers that send a whole answer and close at once, to a client that reads no faster than it likes. */
describe('an answer whose connection ends before it is read', () => {
  let server: Server
  let answer: { head: string; body: Buffer }
  let pool: Pool
  let sockets: Socket[]
  beforeAll(async () => {
    sockets = []
    server = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => undefined)
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\n${answer.head}\r\n`)
        socket.end(answer.body)
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { connections: 4 })
  })
  afterAll(async () => {
    await pool.destroy()
    for (const socket of sockets) socket.destroy()
    server.close()
  })

  const get = async () => {
    const { body } = await pool.request({ method: 'GET', path: '/', highWaterMark: 16 * 1024 })
    return body
  }
  /** As slowly as it takes for the end of the connection to be there first. */
  async function readSlowly(body: AsyncIterable<Buffer>): Promise<number> {
    await sleep(100)
    let bytes = 0
    for await (const chunk of body) {
      bytes += chunk.length
      await sleep(2)
    }
    return bytes
  }

  test.each(Object.entries(framings))('is read whole when its end is told by %s', async (_how, given) => {
    answer = given
    expect(await Promise.all(Array.from({ length: 4 }, async () => readSlowly(await get())))).toEqual(
      Array.from({ length: 4 }, () => BODY.length),
    )
  })

  test.each(Object.entries(short))('is an error when it is short of what was told by %s', async (_how, given) => {
    answer = given
    await expect(get().then(readSlowly)).rejects.toThrow()
  })

  test('that nobody reads harms nobody', async () => {
    answer = framings['its length told']
    const unread = await Promise.all(Array.from({ length: 4 }, get))
    await sleep(200)
    for (const body of unread) body.destroy()
    answer = framings.chunks
    expect(await readSlowly(await get())).toBe(BODY.length)
  })
})
