import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openModels } from '../../src/models/registry.ts'
import { silent } from '../brokers.ts'
import { openWith } from './gateway.ts'

/**
 * An upstream that says a word only once the client has read the one before: what is held back anywhere between the two
 * stops the stream for good, on a machine as slow as it may be (BR-166).
 */
const words = Array.from({ length: 20 }, (_, at) => `word${at}`.padEnd(200, '.'))

interface Waiting {
  /** Lets the upstream say the next. */
  next(): void
}
let waiting: Waiting

type Wire = 'chat' | 'messages' | 'responses'
const frame = (type: string, members: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const usage = { input_tokens: 1, output_tokens: 1 }
const item = { type: 'message', id: 'msg_1', role: 'assistant' }
const whole = words.join('')
const content = [{ type: 'output_text', text: whole, annotations: [] }]
const place = { output_index: 0, item_id: 'msg_1', content_index: 0 }
const ended = { id: 'r', object: 'response', model: 'm', status: 'completed', output: [{ ...item, content }] }

const spoken: Record<Wire, { head: string; word(text: string): string; end: string }> = {
  chat: {
    head: chunk({ role: 'assistant', content: '' }),
    word: (text) => chunk({ content: text }),
    end: `${chunk({}, 'stop')}data: [DONE]\n\n`,
  },
  messages: {
    head:
      frame('message_start', {
        message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage },
      }) + frame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    word: (text) => frame('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    end:
      frame('content_block_stop', { index: 0 }) +
      frame('message_delta', { delta: { stop_reason: 'end_turn' }, usage }) +
      frame('message_stop', {}),
  },
  responses: {
    head:
      frame('response.created', { response: { ...ended, status: 'in_progress', output: [] } }) +
      frame('response.output_item.added', { output_index: 0, item: { ...item, content: [] } }) +
      frame('response.content_part.added', { ...place, part: { ...content[0], text: '' } }),
    word: (delta) => frame('response.output_text.delta', { ...place, delta }),
    end:
      frame('response.output_text.done', { ...place, text: whole }) +
      frame('response.output_item.done', { output_index: 0, item: { ...item, content } }) +
      frame('response.completed', { response: ended }),
  },
}

async function speak(wire: Wire, response: ServerResponse): Promise<void> {
  const { head, word, end } = spoken[wire]
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(head)
  const gone = once(response, 'close').then(() => false)
  for (const text of words) {
    response.write(word(text))
    const read = await Promise.race([
      new Promise<boolean>((resolve) => {
        waiting = { next: () => resolve(true) }
      }),
      gone,
    ])
    if (!read) return
  }
  response.end(end)
}

const paths: Record<string, Wire> = { completions: 'chat', messages: 'messages', responses: 'responses' }
const upstream = createServer((request, response) => {
  request.resume()
  const wire = paths[request.url?.split('/').at(-1) ?? '']
  if (wire) void speak(wire, response)
  else response.writeHead(404).end()
})
let gateway: Awaited<ReturnType<typeof openWith>>
let models: ReturnType<typeof openModels>
beforeAll(async () => {
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const at = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  models = openModels({
    providers: {
      chat: { type: 'openai-compatible', apiBase: `${at}/v1`, models: [] },
      messages: { type: 'anthropic-compatible', apiBase: at, models: [] },
      responses: { type: 'openai-responses', apiBase: `${at}/v1`, models: [] },
    },
    demo: false,
    log: silent,
  })
  gateway = await openWith(models)
}, 60_000)
afterAll(async () => {
  await gateway.close()
  await models.close()
  upstream.closeAllConnections()
  upstream.close()
})

const asks: Record<Wire, [path: string, body: object]> = {
  chat: ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }],
  messages: ['/v1/messages', { max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }],
  responses: ['/v1/responses', { input: 'hi' }],
}
const wires = ['chat', 'messages', 'responses'] as const

describe.each(wires)('a %s client', (dialect) => {
  test.each(wires)('BR-166 BR-161 hears each word of a %s upstream before the next is said', async (wire) => {
    const [path, body] = asks[dialect]
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'otari-key': gateway.firstKey, 'content-type': 'application/json', 'accept-encoding': 'gzip, br' },
      body: JSON.stringify({ model: `${wire}:m`, stream: true, ...body }),
    })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect(response.headers.get('content-encoding')).toBeNull()
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    expect(response.headers.get('cache-control')).toContain('no-cache')
    let heard = ''
    let told = 0
    const decoder = new TextDecoder()
    for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
      heard += decoder.decode(bytes, { stream: true })
      const word = words[told]
      if (word === undefined || !heard.includes(word)) continue
      told += 1
      waiting.next()
    }
    expect(told).toBe(words.length)
    expect(heard).toMatch(/\[DONE\]|message_stop|response\.completed/)
  })
})
