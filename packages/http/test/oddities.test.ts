import type { Socket } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { dnsStub, loopbackDialer, openRawSite } from '@tollgate/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { type Downloaded, type DownloadRequest, openDownloader, openGuard } from '../src/index.ts'

const closing: { close(): Promise<void> }[] = []
afterAll(() => Promise.all(closing.map((each) => each.close())))

/** One GET of a server that speaks bytes. */
async function ask(answer: (socket: Socket) => void, change: Partial<DownloadRequest> = {}) {
  let asked = 0
  const site = await openRawSite((socket) => {
    asked++
    answer(socket)
  })
  closing.push(site)
  const download = openDownloader({ userAgent: 'x', dialer: loopbackDialer({ '*': site.port }) })
  const result = await download({
    url: 'http://a.test/page',
    judge: openGuard(dnsStub({ 'a.test': ['93.184.216.34'] }).resolve),
    policy: { allowedDomains: null, blockedDomains: [] },
    accept: '*/*',
    maxBytes: 100_000,
    maxRedirects: 5,
    allowDowngrade: false,
    deadline: Date.now() + 5_000,
    signal: new AbortController().signal,
    ...change,
  })
  return { result, asked }
}

/** What it came to, in a line: `200 body`, or the failure and its stage. */
function shown(result: Downloaded): string {
  if (result.outcome === 'answered') return `${result.head.status} ${Buffer.from(result.body?.bytes ?? [])}`
  return 'stage' in result ? `${result.failure} at ${result.stage}` : result.failure
}

const wire = (text: string): string => text.replace(/\n/g, '\r\n')
const sends =
  (head: string, body: string | Uint8Array = '') =>
  (socket: Socket): void => {
    socket.write(wire(head))
    socket.end(body)
  }

describe('an answer that is odd, and can be read', () => {
  test.each<[what: string, answer: (socket: Socket) => void, result: string]>([
    ['no type', sends('HTTP/1.1 200 OK\nContent-Length: 4\n\n', 'body'), '200 body'],
    ['a body to the end of the connection', sends('HTTP/1.1 200 OK\n\n', 'body'), '200 body'],
    ['more than its length', sends('HTTP/1.1 200 OK\nContent-Length: 4\n\n', 'body and HTTP/1.1 200 OK'), '200 body'],
    ['a thousand cookies', sends(`HTTP/1.1 200 OK\n${'Set-Cookie: a=b\n'.repeat(1_000)}\n`, 'body'), '200 body'],
    [
      'chunks with extensions',
      sends('HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n4;a="b"\nbody\n0\n\n'),
      '200 body',
    ],
    [
      'chunks and a trailer',
      sends('HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n4\nbody\n0\nX-A: b\n\n'),
      '200 body',
    ],
    [
      'two hints before it',
      sends('HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 102 Processing\n\nHTTP/1.1 200 OK\n\n', 'body'),
      '200 body',
    ],
    ['a version of another wire', sends('HTTP/2.0 200 OK\nContent-Length: 4\n\n', 'body'), '200 body'],
    ['a status of nobody', sends('HTTP/1.1 599 Whatever\nContent-Length: 4\n\n', 'body'), '599 body'],
    ['a redirect without a Location', sends('HTTP/1.1 302 Found\nContent-Length: 4\n\n', 'body'), '302 body'],
    [
      'a Refresh',
      sends('HTTP/1.1 200 OK\nRefresh: 0; url=http://a.test/other\nContent-Length: 4\n\n', 'body'),
      '200 body',
    ],
    [
      'a body in brotli nobody asked for',
      sends('HTTP/1.1 200 OK\nContent-Encoding: br\n\n', brotliCompressSync('body')),
      '200 body',
    ],
    [
      'gzip and rubbish behind it',
      sends('HTTP/1.1 200 OK\nContent-Encoding: gzip\n\n', Buffer.concat([gzipSync('body'), Buffer.alloc(9)])),
      '200 body',
    ],
    [
      'gzip in two parts',
      sends('HTTP/1.1 200 OK\nContent-Encoding: gzip\n\n', Buffer.concat([gzipSync('bo'), gzipSync('dy')])),
      '200 body',
    ],
  ])('%s', async (_what, answer, result) => {
    const { result: came, asked } = await ask(answer)
    expect(shown(came)).toBe(result)
    expect(asked).toBe(1)
  })
})

describe('an answer that is none', () => {
  test.each<[what: string, answer: (socket: Socket) => void, result: string]>([
    ['HTTP/0.9', sends('<html>a page without a head</html>\n'), 'network at headers'],
    ['another protocol', sends('ICY 200 OK\n\n', 'body'), 'network at headers'],
    ['a status that is no number', sends('HTTP/1.1 abc OK\n\n', 'body'), 'network at headers'],
    ['a close within the head', sends('HTTP/1.1 200 OK\nContent-'), 'network at headers'],
    ['a close at once', (socket) => socket.end(), 'network at headers'],
    [
      'a reset within the head',
      (socket) => socket.write('HTTP/1.1 200', () => socket.resetAndDestroy()),
      'network at headers',
    ],
    [
      'a 100 that was not waited for',
      sends('HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\n\n', 'body'),
      'network at headers',
    ],
    [
      'another protocol by upgrade',
      sends('HTTP/1.1 101 Switching Protocols\nConnection: upgrade\nUpgrade: h2c\n\n', 'body'),
      'network at headers',
    ],
    ['a header of 100 kB', sends(`HTTP/1.1 200 OK\nX-A: ${'a'.repeat(100_000)}\n\n`), 'network at headers'],
    ['ten thousand headers', sends(`HTTP/1.1 200 OK\n${'X-A: b\n'.repeat(20_000)}\n`), 'network at headers'],
    [
      'lengths that differ',
      sends('HTTP/1.1 200 OK\nContent-Length: 4\nContent-Length: 5\n\n', 'body'),
      'network at headers',
    ],
    [
      'lengths that differ in one line',
      sends('HTTP/1.1 200 OK\nContent-Length: 4, 5\n\n', 'body'),
      'network at headers',
    ],
    ['a negative length', sends('HTTP/1.1 200 OK\nContent-Length: -4\n\n', 'body'), 'network at headers'],
    [
      'a length of 30 digits',
      sends(`HTTP/1.1 200 OK\nContent-Length: ${'9'.repeat(30)}\n\n`, 'body'),
      'network at headers',
    ],
    [
      'a length and chunks',
      sends('HTTP/1.1 200 OK\nContent-Length: 4\nTransfer-Encoding: chunked\n\n4\nbody\n0\n\n'),
      'network at headers',
    ],
    ['a NUL in a header', sends('HTTP/1.1 200 OK\nX-A: \0b\n\n', 'body'), 'network at headers'],
    ['less than its length', sends('HTTP/1.1 200 OK\nContent-Length: 400\n\n', 'body'), 'network at body'],
    ['chunks of rubbish', sends('HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nrubbish\n'), 'network at body'],
    [
      'a chunk of 2^80 bytes',
      sends('HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nfffffffffffffffffffff\nbody'),
      'network at body',
    ],
    [
      'a chunk longer than it says',
      sends('HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nbody\n0\n\n'),
      'network at body',
    ],
    ['chunks without an end', sends('HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n4\nbody\n'), 'network at body'],
    [
      'a reset within the body',
      (socket) => socket.write(wire('HTTP/1.1 200 OK\nContent-Length: 9\n\nbody'), () => socket.resetAndDestroy()),
      'network at body',
    ],
    [
      'half of a gzip body',
      sends('HTTP/1.1 200 OK\nContent-Encoding: gzip\n\n', gzipSync('body'.repeat(99)).subarray(0, 20)),
      'network at encoding',
    ],
    [
      'half of a brotli body',
      sends('HTTP/1.1 200 OK\nContent-Encoding: br\n\n', brotliCompressSync('b'.repeat(99)).subarray(0, 5)),
      'network at encoding',
    ],
    [
      'a coding nobody knows how to undo',
      sends('HTTP/1.1 200 OK\nContent-Encoding: compress\n\n', 'body'),
      'network at encoding',
    ],
    ['a redirect to itself', sends('HTTP/1.1 302 Found\nLocation: /page\n\n'), 'redirect_disallowed'],
    ['a redirect to a place in itself', sends('HTTP/1.1 302 Found\nLocation: #there\n\n'), 'redirect_disallowed'],
    ['a redirect to nothing', sends('HTTP/1.1 302 Found\nLocation:\n\n'), 'redirect_disallowed'],
    ['a redirect to what is no URL', sends('HTTP/1.1 302 Found\nLocation: http://[\n\n'), 'redirect_disallowed'],
    [
      'two Locations, the last of them inside',
      sends('HTTP/1.1 302 Found\nLocation: http://b.test/\nLocation: http://127.0.0.1/\n\n'),
      'redirect_disallowed',
    ],
  ])('%s', async (_what, answer, result) => expect(shown((await ask(answer)).result)).toBe(result))
})

/** Sends without an end, as fast as it is read. */
const floods =
  (head: string, piece: string) =>
  (socket: Socket): void => {
    socket.write(wire(head))
    const block = Buffer.from(wire(piece).repeat(Math.ceil(65_536 / piece.length)))
    const more = () => {
      while (!socket.destroyed && socket.write(block)) {} // until the pipe is full
    }
    socket.on('drain', more)
    more()
  }

describe('WM-25 a flood of what is no body ends long before the deadline', () => {
  const late = { deadline: Date.now() + 600_000, maxBytes: 1_000 }
  test.each([
    ['hints', 'HTTP/1.1 103 Early Hints\n\n', 'HTTP/1.1 103 Early Hints\nX-A: b\n\n', 'network at headers'],
    ['a chunk’s extension', 'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1;', 'a', 'network at body'],
    ['a trailer', 'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1\nx\n0\n', 'X-A: b\n', 'network at body'],
    ['the zeros before a chunk’s size', 'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n', '0', 'network at body'],
  ])('WM-25 %s', async (_what, head, piece, result) =>
    expect(shown((await ask(floods(head, piece), late)).result)).toBe(result),
  )

  test('a body without an end is cut at its limit', async () => {
    const { result } = await ask(floods('HTTP/1.1 200 OK\n\n', 'x'), late)
    expect(result).toMatchObject({ body: { truncated: true, bytes: { length: 1_000 } } })
  })

  test('a body in chunks of one byte is no flood', async () => {
    const { result } = await ask(
      sends('HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n', `${'1\r\nx\r\n'.repeat(50_000)}0\r\n\r\n`),
    )
    expect(result).toMatchObject({ body: { truncated: false, bytes: { length: 50_000 } } })
  })
})
