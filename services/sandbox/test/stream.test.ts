import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Backend, type Content, clientOf, openBackend, printed, type SessionClient } from './harness.ts'
import { residentBytes } from './host.ts'

interface Event {
  event: string
  data: {
    stream: 'stdout' | 'stderr'
    text: string
    status: number
    execution_time_ms: number
    result_block: { content: Content }
  }
  atMs: number
}

let backend: Backend
let session: SessionClient
beforeAll(async () => {
  backend = await openBackend({ maxSessions: 8, warmSessions: 1 })
  session = await backend.open()
})
afterAll(() => backend.close())

/** Everything that comes of a call whose client wants events; `seen` hears each at once. */
async function streamed(json: object, seen: (event: Event) => void = () => {}, of = session.id) {
  const began = performance.now()
  const response = await fetch(`${backend.url}/sessions/${of}/exec`, {
    method: 'POST',
    headers: { accept: 'text/event-stream, application/json', 'content-type': 'application/json' },
    body: JSON.stringify(json),
  })
  const events: Event[] = []
  const comments: string[] = []
  let text = ''
  const decoder = new TextDecoder('utf-8', { fatal: true })
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece, { stream: true })
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const read = /^event: (\w+)\ndata: (.*)$/.exec(frame)
      if (!read) comments.push(frame)
      else {
        const event = { event: read[1] as string, data: JSON.parse(read[2] as string), atMs: performance.now() - began }
        events.push(event)
        seen(event)
      }
    }
  }
  const type = response.headers.get('content-type') ?? ''
  return { status: response.status, type, events, comments, rest: text }
}

const python = (code: string, timeout_seconds = 20) => ({ tool: 'code_execution', input: { code }, timeout_seconds })
const textOf = (events: Event[], stream: string) =>
  events.map(({ event, data }) => (event === 'output' && data.stream === stream ? data.text : '')).join('')

describe('a call whose client takes events', () => {
  test('sends output when it is written, and at the end exactly what the plain call answers', async () => {
    const code = `
import os, sys, time
print("first")
while not os.path.exists("go"): time.sleep(0.01)
os.unlink("go")
print("second", file=sys.stderr)
open("made.txt", "w").write("x")
3 + 4`
    // the program waits for what is only done once its first line was heard of
    const { status, type, events, rest } = await streamed(python(code), ({ data }) => {
      if (data.text === 'first\n') void session.put('go', 'go')
    })
    expect([status, type, rest]).toEqual([200, 'text/event-stream', ''])
    expect(events.map(({ event }) => event).at(-1)).toBe('result')
    expect([textOf(events, 'stdout'), textOf(events, 'stderr')]).toEqual(['first\n7\n', 'second\n'])
    const { content } = events.at(-1)?.data.result_block ?? {}
    expect(content).toEqual({
      type: 'code_execution_result',
      stdout: 'first\n7\n',
      stderr: 'second\n',
      return_code: 0,
      content: [{ type: 'code_execution_output', file_id: 'made.txt', filename: 'made.txt' }],
    })
  })

  test.each([
    ['a shell', { tool: 'bash_code_execution', input: { command: 'echo a; sleep 0.2; echo b >&2' } }],
    ['a failing program', python('print(1)\n1/0')],
    ['one that is silent', python('x = 1')],
    ['one that times out', python('print("on")\nwhile True: pass', 1)],
    ['one that ends its interpreter', python('import os; print("last words"); os._exit(3)')],
    [
      'invalid UTF-8',
      python('import os\nfor _ in range(3): os.write(1, b"\\xff\\xe2\\x82"); os.write(1, b"\\xac!\\xf0\\x9f")'),
    ],
    ['the editor', { tool: 'text_editor_code_execution', input: { command: 'create', path: 'e.txt', file_text: 'x' } }],
  ])('answers %s as the plain call does, its events being all of the output', async (_what, call) => {
    const { events } = await streamed({ ...call, tool_use_id: 'same' })
    await session.shell('rm -f e.txt')
    const plain = await session.exec({ ...call, tool_use_id: 'same' })
    await session.shell('rm -f e.txt')
    const result = events.at(-1)?.data
    const uncounted = (body: unknown) => JSON.parse(JSON.stringify(body).replaceAll(/<cell \d+>/g, '<cell>'))
    expect(uncounted(result)).toEqual(uncounted({ ...plain.body, execution_time_ms: result?.execution_time_ms }))
    const { stdout, stderr } = result?.result_block.content ?? {}
    if (call.tool !== 'text_editor_code_execution')
      expect([textOf(events, 'stdout'), textOf(events, 'stderr')]).toEqual([stdout, stderr])
  })

  test.each([1, 2, 3])(
    'BR-124 characters of four bytes come whole, cut after %i bytes by pipes and by the limit',
    async (shift) => {
      // fatal decoding in `streamed` and the comparison below would both see half a character
      const code = `import os\nos.write(1, b"x" * ${shift})\nfor _ in range(9): os.write(1, "\u{1F600}".encode() * 32_768)`
      const { events } = await streamed(python(code))
      const text = textOf(events, 'stdout')
      expect(text).not.toContain('\ufffd')
      expect(text.replace(/\n\[output cut.*$/s, '')).toMatch(/^x+(\u{1F600})+$/u)
      expect(text).toBe(events.at(-1)?.data.result_block.content.stdout)
      expect(text).toMatch(/\[output cut: \d+ more bytes\]$/)
    },
  )

  test.each([
    [python('1'), 404, 'sbx_none'],
    [{ tool: 'magic', input: {} }, 400, undefined],
    [{ tool: 'code_execution', input: {} }, 422, undefined],
  ])('what is refused before it began has its status: %#', async (call, expected, of) => {
    const { status, type } = await streamed(call, undefined, of ?? session.id)
    expect([status, type]).toEqual([expected, 'application/json; charset=utf-8'])
  })

  test('BR-128 a session that is lost in the middle is an error event', async () => {
    const own = await backend.open()
    const { status, events } = await streamed(
      python('print("on")\nwhile True: pass'),
      ({ data }) => {
        if (data.text === 'on\n') void own.end()
      },
      own.id,
    )
    expect(status).toBe(200)
    expect(events.at(-1)).toMatchObject({ event: 'error', data: { status: 404, detail: expect.any(String) } })
  })

  test('A10 a client that leaves in the middle ends its call', async () => {
    const own = await backend.open()
    const leaving = new AbortController()
    const response = await fetch(`${backend.url}/sessions/${own.id}/exec`, {
      method: 'POST',
      headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
      body: JSON.stringify(python('x = 1\nprint("on")\nwhile True: pass', 60)),
      signal: leaving.signal,
    })
    expect(new TextDecoder().decode((await response.body?.getReader().read())?.value)).toContain('on')
    leaving.abort()
    // asked at once; its turn comes when the call of the one who left has ended
    expect(printed(await own.python('print(x)'))).toBe('1\n')
  })
})

test('C5 C6 a client that does not read holds up neither the program nor the memory of the server', async () => {
  const own = await backend.open()
  const before = residentBytes()
  const lazy = await Promise.all(
    Array.from({ length: 4 }, () => askAndNotRead(own.id, 'yes "\u0001" | head -c 200000000; touch done')),
  )
  onTestFinished(() => {
    for (const socket of lazy) socket.destroy()
  })
  // all four calls come to their end although nobody takes what they write
  await expect
    .poll(async () => (await own.list()).body.files.map(({ path }) => path), { timeout: 30_000 })
    .toContain('done')
  expect(printed(await own.python('print(1)'))).toBe('1\n')
  expect(residentBytes() - before).toBeLessThan(100 * 1024 * 1024)
})

test('a silent call says now and then that it goes on', async () => {
  const quick = await openBackend({ keepAliveSeconds: 0.05, warmSessions: 0 })
  onTestFinished(() => quick.close())
  const { body } = await clientOf(quick.url).send<{ session_id: string }>('POST', '/sessions')
  const response = await fetch(`${quick.url}/sessions/${body.session_id}/exec`, {
    method: 'POST',
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
    body: JSON.stringify(python('import time; time.sleep(0.5)')),
  })
  expect((await response.text()).match(/^: /gm)?.length).toBeGreaterThan(1)
})

test.each(['text/event-stream', 'application/json'])(
  'a client that reads nothing of its %s answer loses it',
  async (accept) => {
    const strict = await openBackend({ unreadAnswerSeconds: 0.3, warmSessions: 0 })
    onTestFinished(() => strict.close())
    const own = await strict.open()
    // as JSON six times as long, and more than the system takes for a client that does not read
    const command = 'yes "\u0001" | head -c 2000000 | tee /dev/stderr'
    const socket = await askAndNotRead(own.id, command, { url: strict.url, accept })
    onTestFinished(() => void socket.destroy())
    // a server that is done with a connection resets it; blank lines between requests mean nothing to any other
    await expect
      .poll(
        () => {
          socket.write('\r\n')
          return socket.errored
        },
        { timeout: 20_000 },
      )
      .toMatchObject({ code: expect.stringMatching(/^(ECONNRESET|EPIPE)$/) })
    expect(printed(await own.python('print(1)'))).toBe('1\n')
  },
)

async function askAndNotRead(
  of: string,
  command: string,
  { url, accept } = { url: backend.url, accept: 'text/event-stream' },
): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.pause().on('error', () => {}) // a reset, where that is what is waited for
  const body = JSON.stringify({ tool: 'bash_code_execution', input: { command } })
  socket.write(
    `POST /sessions/${of}/exec HTTP/1.1\r\nhost: x\r\naccept: ${accept}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  return socket
}
