import { expect, test } from 'vitest'
import type { JsonObject, Message, Part } from '../../src/conversation/turn.ts'
import { parseChat } from '../../src/dialects/chat/parse.ts'
import { withoutEchoes } from '../../src/dialects/messages/echo.ts'
import { parseResponses } from '../../src/dialects/responses/parse.ts'
import { withoutForeignCalls } from '../../src/loop/foreign-calls.ts'
import { rememberMixedTurns } from '../../src/loop/mixed-turns.ts'
import { transcriptOf as blocksOf } from '../../src/models/anthropic/messages.ts'
import { ownHistory } from '../../src/models/anthropic/own-history.ts'
import { transcriptOf as contentsOf } from '../../src/models/gemini/contents.ts'
import { pairResults } from '../../src/models/history.ts'
import { tenancy } from '../brokers.ts'
import { turnOf } from '../turns.ts'

// Every case is as large as a body may be. What costs the square of it takes minutes and runs out of the test's time.

const many = <T>(count: number, one: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => one(at))
const own = (role: 'user' | 'assistant', content: JsonObject[]): Message => ({
  role,
  parts: content.map(
    ({ type, id }): Part => (type === 'tool_use' ? call(String(id)) : { type: 'text', text: String(type) }),
  ),
  raw: { dialect: 'messages', value: { role, content } },
})
const call = (id: string): Part => ({ type: 'call', id, name: 'f', arguments: '{}' })
const said = (role: Message['role'], parts: Part[]): Message => ({ role, parts })
const hello = said('user', [{ type: 'text', text: 'hi' }])

test('30,000 turns with a call and its result are paired', () => {
  const history = many(30_000, (at) => [
    said('assistant', [call(`c${at}`)]),
    said('tool', [{ type: 'result', callId: `c${at}`, text: 'x', isError: false }]),
  ]).flat()
  expect(pairResults(history)).toEqual(history)
})

test('30,000 turns of a client of Messages stay as it wrote them', () => {
  const history = many(30_000, (at) => [
    own('assistant', [{ type: 'tool_use', id: `c${at}`, name: 'f', input: {} }]),
    own('user', [{ type: 'tool_result', tool_use_id: `c${at}`, content: 'x' }]),
  ]).flat()
  expect(ownHistory(history, false)).toEqual(history.map(({ raw }) => raw?.value))
})

test('100,000 calls of the vendor’s tools without results are taken out, and 100,000 results stay', () => {
  const calls = many(100_000, (at) => ({ type: 'server_tool_use', id: `s${at}`, name: 'web_search', input: {} }))
  expect(ownHistory([own('assistant', calls), own('user', [{ type: 'text', text: 'x' }])], false)).toHaveLength(1)

  const made = many(100_000, (at) => ({ type: 'tool_use', id: `c${at}`, name: 'f', input: {} }))
  const results = made.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'x' }))
  const [, answered] = ownHistory([own('assistant', made), own('user', results)], false)
  expect(answered?.content).toEqual(results)
})

test('30,000 messages of one role in a row, whose thinking nobody signed, become one', () => {
  const thought = own('assistant', [
    { type: 'thinking', thinking: 't' },
    { type: 'text', text: 'x' },
  ])
  const [one, ...others] = ownHistory(
    many(30_000, () => thought),
    false,
  )
  expect([one?.content, others]).toEqual([many(30_000, () => ({ type: 'text', text: 'x' })), []])
  expect(thought.raw?.value.content).toHaveLength(2)
})

test('60,000 code pairs that this gateway showed become words', () => {
  const pairs = many(60_000, (at) => [
    { type: 'server_tool_use', id: `otari_srvtoolu_${at}`, name: 'code_execution', input: { code: '1' } },
    { type: 'code_execution_tool_result', tool_use_id: `otari_srvtoolu_${at}`, content: { stdout: `${at}` } },
  ]).flat()
  const [message] = withoutEchoes([{ role: 'assistant', content: pairs }])
  const blocks = message?.content as { text: string }[]
  expect(blocks).toHaveLength(60_000)
  expect(blocks.at(-1)?.text).toContain('59999')
})

test('100,000 calls of another backend’s tools go with their results', () => {
  const calls = many(100_000, (at): Part => ({ type: 'call', id: `c${at}`, name: 'web', arguments: '', builtin: true }))
  expect(withoutForeignCalls(turnOf([], { messages: [hello, said('assistant', calls)] }), undefined)).toEqual([hello])
})

test('BR-055 a question of 4 MB before 5,000 turns with calls is read once', () => {
  const turns = rememberMixedTurns()
  const asked = said('user', [{ type: 'text', text: 'q'.repeat(4_000_000) }])
  const replay = [said('assistant', [{ type: 'text', text: 'the whole turn' }])]
  const kept = { id: 'c7', name: 'f', arguments: '{}' }
  turns.keep(tenancy, { asked, shown: { text: '', calls: [kept] }, replay })
  const history = [asked, ...many(5_000, (at) => said('assistant', [call(`c${at}`)]))]
  const restored = turns.restore(tenancy, history)
  expect(restored[8]).toEqual(replay[0])
  expect(restored.filter((message, at) => message !== history[at])).toHaveLength(1)
})

test('an id that 50,000 calls share becomes as many ids', () => {
  const calls = said(
    'assistant',
    many(50_000, () => call('c')),
  )
  const blocks = blocksOf([hello, calls], false).messages[1]?.content ?? []
  expect([blocks[1]?.id, new Set(blocks.map(({ id }) => id)).size]).toEqual(['c_2', 50_000])
})

test('a message of 200,000 parts joins its neighbour on every way in and out', () => {
  const words = said(
    'user',
    many(200_000, () => ({ type: 'text', text: 'x' })),
  )
  expect(blocksOf([hello, words], false).messages[0]?.content).toHaveLength(200_001)
  expect(contentsOf([hello, words], 'p', 'm').contents[0]?.parts).toHaveLength(200_001)

  const content = many(200_000, () => ({ type: 'text', text: 'x' }))
  const chat = parseChat({ model: 'a:m', messages: [{ role: 'assistant', content, reasoning_content: 't' }] }, 1)
  expect(chat.messages[0]?.parts.slice(0, 2)).toEqual([
    { type: 'thinking', text: 't' },
    { type: 'text', text: 'x' },
  ])
  const output = many(200_000, () => ({ type: 'output_text', text: 'x', annotations: [] }))
  const input = ['a', 'b'].map((id) => ({
    type: 'message',
    id,
    role: 'assistant',
    status: 'completed',
    content: output,
  }))
  expect(parseResponses({ model: 'a:m', input }, 1).turn.messages[0]?.parts).toHaveLength(400_000)
})
