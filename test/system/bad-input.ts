import { describe, expect, test } from 'vitest'
import { ask } from './client.ts'
import type { System } from './system.ts'

const messages = [{ role: 'user', content: 'hello' }]
const chat = (more: object) => ({ body: { model: 'openai:gpt-5', messages, ...more } })
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
const code = { type: 'otari_code_execution' }

type Sent = Omit<Parameters<typeof ask>[3], 'key'> & { key?: string; method?: string; path?: string }

/** What is sent, and the status and words that answer it. A key is added where none is named. */
const table: [what: string, sent: Sent, status: number, says: RegExp][] = [
  ['a body that is no JSON', { text: '{"model": "openai:gpt-5", "messages": [' }, 422, /not valid JSON/],
  ['no body', { text: '' }, 422, /body/],
  ['a body that is a list', { text: '[]' }, 422, /body/],
  ['a body that is null', { text: 'null' }, 422, /body/],
  ['bytes that are no UTF-8', { text: '\u0000\u0001\ufffd' }, 422, /not valid JSON/],
  ['another media type', { text: 'model=x', headers: { 'content-type': 'text/plain' } }, 415, /application\/json/],
  ['a form', { text: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 415, /json/],
  ['no model', { body: { messages } }, 422, /"model"/],
  ['no messages', { body: { model: 'openai:gpt-5' } }, 422, /"messages"/],
  ['an empty list of messages', chat({ messages: [] }), 422, /"messages"/],
  ['messages that are a text', chat({ messages: 'hello' }), 422, /"messages"/],
  ['a role that nobody has', chat({ messages: [{ role: 'oracle', content: 'hi' }] }), 422, /"role"/],
  ['content that is a number', chat({ messages: [{ role: 'user', content: 7 }] }), 422, /"content"/],
  ['a result that answers no call', chat({ messages: [{ role: 'tool', content: 'x' }] }), 422, /tool_call_id/],
  ['a stream flag that is a text', chat({ stream: 'yes' }), 422, /"stream"/],
  ['a temperature that is a text', chat({ temperature: 'hot' }), 422, /"temperature"/],
  ['fewer than no tokens', chat({ max_tokens: -1 }), 422, /"max_tokens"/],
  ['a number past all bounds', { text: `{"model":"openai:gpt-5","messages":[],"max_tokens":1e999}` }, 422, /"detail"/],
  ['tools that are no list', chat({ tools: { 0: code } }), 422, /"tools"/],
  ['a tool without a type', chat({ tools: [{ name: 'x' }] }), 422, /"type"/],
  ['a function without a name', chat({ tools: [{ type: 'function', function: {} }] }), 422, /"name"/],
  ['more rounds than there may be', chat({ max_tool_iterations: 26 }), 422, /max_tool_iterations/],
  ['a fetch with options', chat({ tools: [{ type: 'otari_web_fetch', max_uses: 1 }] }), 400, /only the type field/],
  ['a search used half a time', chat({ tools: [{ type: 'otari_web_search', max_uses: 0.5 }] }), 400, /max_uses/],
  ['a search with an unknown member', chat({ tools: [{ type: 'otari_web_search', colour: 1 }] }), 400, /unsupported/],
  ['one tool twice', chat({ tools: [{ type: 'otari_web_search' }, { type: 'otari_web_search' }] }), 400, /once/],
  [
    'a function by the name of a tool that runs here',
    chat({ tools: [code, { type: 'function', function: { name: 'code_execution' } }] }),
    400,
    /code_execution/,
  ],
  ['a container that was never there', chat({ container: 'otari_cntr_x', tools: [code] }), 400, /expired or does not/],
  ['an MCP server without a name', chat({ mcp_servers: [{ url: 'http://x' }] }), 422, /"mcp_servers",0,"name"/],
  ['an MCP server inside', chat({ mcp_servers: [{ name: 'x', url: 'http://10.0.0.1/' }] }), 400, /MCP server/],
  ['a model without a provider', chat({ model: 'gpt-5' }), 400, /provider:model/],
  ['a model of an unknown provider', chat({ model: 'nobody:gpt-5' }), 404, /no model provider/],
  ['a model with a very long name', chat({ model: `openai:${'m'.repeat(5_000)}` }), 422, /"model"/],
  ['a body larger than any may be', chat({ user: 'x'.repeat(300 * 1024) }), 413, /too large/],
  ['lists nested ten thousand deep', { text: `{"model":"openai:gpt-5","messages":${nested(10_000)}}` }, 422, /nested/],
  ['a prototype', { text: '{"model":"openai:gpt-5","messages":[],"__proto__":{"a":1}}' }, 422, /__proto__/],
  ['no key', { ...chat({}), key: '' }, 401, /Missing Otari-Key, Authorization, or x-api-key header/],
  ['an unknown key', { ...chat({}), key: 'gw-nobody-has-this-key' }, 401, /Invalid API key/],
  ['a key of ten thousand characters', { ...chat({}), key: `gw-${'k'.repeat(10_000)}` }, 401, /Invalid API key/],
  ['a key in the URL', { ...chat({}), path: '/v1/chat/completions?api_key=gw-x' }, 400, /not accepted in the URL/],
  ['another method', { method: 'DELETE' }, 404, /Not Found/],
  ['a path that is not there', { ...chat({}), path: '/v1/chat/completion' }, 404, /Not Found/],
]

/** The first of two mistakes in one request is the one that is told. */
const pairs: [what: string, sent: Sent, status: number][] = [
  ['an unknown key before a body that is no JSON', { text: '{', key: 'gw-wrong' }, 401],
  ['a body of the wrong form before a user that is another', chat({ messages: 1, user: 'somebody' }), 422],
  ['another user before a declaration', chat({ user: 'somebody', tools: [{ type: 'otari_web_fetch', a: 1 }] }), 403],
  [
    'a declaration before a price',
    {
      body: {
        model: 'openai:unpriced',
        messages,
        tools: [{ ...code }, { ...code }, { type: 'otari_web_fetch', a: 1 }],
      },
    },
    400,
  ],
  ['a body of the wrong form before a price', { body: { model: 'openai:unpriced', messages: [] } }, 422],
]

/** What a client does wrong is told to it as its mistake, and reaches nobody else. */
export function badInput(use: () => System): void {
  const refused = async ({ method = 'POST', path = '/v1/chat/completions', key, ...sent }: Sent) => {
    const { deployment, outside, key: good } = use()
    const asked = () => outside.openai.requests.length + outside.search.requests.length + outside.web.requests.length
    const before = asked()
    const answer = await ask(deployment, method, path, { ...sent, ...(key === '' ? {} : { key: key ?? good }) })
    expect(asked()).toBe(before)
    return answer
  }

  describe('R-60 T-32 a request with', () => {
    test.each(table)('%s is refused before anyone is asked', async (_what, sent, status, says) => {
      const answer = await refused(sent)
      expect([answer.status, answer.text]).toEqual([status, expect.stringMatching(says)])
      expect(Object.keys(answer.json)).toEqual(['detail'])
      const { detail } = answer.json
      if (status === 422)
        expect(detail[0]).toEqual({ loc: expect.any(Array), msg: expect.any(String), type: expect.any(String) })
      else expect(typeof detail).toBe('string')
    })
  })

  describe('R-65 of two mistakes', () => {
    test.each(pairs)('%s', async (_what, sent, status) => {
      expect((await refused(sent)).status).toBe(status)
    })
  })
}
