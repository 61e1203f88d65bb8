import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/conversation/turn.ts'
import { userMessage } from '../turns.ts'
import { chatTarget, type Given, planOf } from './planning.ts'

describe('purpose hints', () => {
  const code = { type: 'otari_code_execution' }
  const systemOf = (tools: JsonObject[], given: Given = {}) => planOf(tools, given).messages[0]

  test('T-29 T-30 are taken from the declaration, else the setting, else what is built in', () => {
    const settings = { webSearchPurposeHint: 'set search', sandboxPurposeHint: 'set code' }
    const text = (tools: JsonObject[], given?: Given) => systemOf(tools, given)?.parts[0]
    expect(text([{ type: 'otari_web_search' }])).toEqual({
      type: 'text',
      text: 'You have access to the following tools:\n- web_search: Use it for anything recent.',
    })
    expect(text([{ type: 'otari_web_search' }, code], { settings })).toMatchObject({
      text: 'You have access to the following tools:\n- web_search: set search\n- code_execution: set code',
    })
    expect(
      text(
        [
          { type: 'otari_web_search', purpose_hint: 'own search' },
          { ...code, purpose_hint: 'own code' },
        ],
        { settings },
      ),
    ).toMatchObject({
      text: 'You have access to the following tools:\n- web_search: own search\n- code_execution: own code',
    })
  })

  test('T-29 stand under the header of the request, else of the deployment', () => {
    const header = (given: Given) => JSON.stringify(systemOf([code], given)?.parts[0]).match(/"text":"(.*?)\\n/)?.[1]
    expect(header({ settings: { toolsHeader: 'Set:' } })).toBe('Set:')
    expect(header({ settings: { toolsHeader: 'Set:' }, turn: { toolsHeader: 'Asked:' } })).toBe('Asked:')
  })

  test('T-29 in Chat follow a first system message, whose other members stay', () => {
    const given = (content: string | JsonObject[]) => ({
      turn: {
        messages: [
          {
            role: 'system' as const,
            parts: [{ type: 'text' as const, text: 'Be brief.' }],
            raw: { dialect: 'chat' as const, value: { role: 'system', name: 'n', content } },
          },
          userMessage('Hi'),
        ],
      },
    })
    const block = expect.stringMatching(/^You have access/)
    expect(systemOf([code], given('Be brief.'))).toMatchObject({
      parts: [{ text: 'Be brief.' }, { text: block }],
      raw: { value: { name: 'n', content: expect.stringMatching(/^Be brief\.\n\nYou have access/) } },
    })
    const array = [{ type: 'text', text: 'Be brief.', cache_control: {} }]
    expect(systemOf([code], given(array))?.raw?.value.content).toEqual([...array, { type: 'text', text: block }])
    expect(planOf([code], given('Be brief.')).messages).toHaveLength(2)
  })

  test('T-29 in the other dialects come first', () => {
    const system = { role: 'system' as const, parts: [{ type: 'text' as const, text: 'Be brief.' }] }
    const messages = [system, userMessage('Hi')]
    const target = { ...chatTarget, dialect: 'messages' as const }
    expect(systemOf([code], { turn: { dialect: 'messages', messages }, target })?.parts).toMatchObject([
      { text: expect.stringMatching(/^You have access/) },
      { text: 'Be brief.' },
    ])
  })
})
