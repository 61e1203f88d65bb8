import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { safeText } from '../../src/models/safe-text.ts'

describe('an upstream’s sentence is made fit for a client', () => {
  test('no part of a hidden text is left where the sentence is cut', () => {
    const key = 'qZ7kkSecretKey99'
    for (let length = 1_975; length < 2_000; length++) {
      expect(safeText(`sk-${'a'.repeat(length - 4)} ${key} was refused`, [key])).not.toContain('qZ7')
    }
  })

  test.each([
    ['Incorrect API key provided: sk-proj-abcDEF123456.', 'Incorrect API key provided: ***.'],
    ['key sk-ant-api03-aaaa_bbbb-cccc was refused', 'key *** was refused'],
    ['Authorization: Bearer abcdefghijklmnop', 'Authorization: ***'],
    ['api_key=supersecret123 is wrong', 'api_key=*** is wrong'],
    ['gw-0123456789abcdef', '***'],
    ['AIzaSyA1234567890 and AKIAIOSFODNN7EXAMPLE', '*** and ***'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc', '***'],
    [
      'Rate limit reached for gpt-4o in organization org-AbCdEf123 on tokens per min',
      'Rate limit reached for gpt-4o in organization *** on tokens per min',
    ],
    ['connect to 10.0.0.5:8000 failed', 'connect to *** failed'],
    ['http://vllm.models.svc:8000/v1 said no', 'http://***/v1 said no'],
    ['host [fd00::1]:80', 'host ***'],
    ['first line\nTraceback (most recent call last)', 'first line'],
    ['\n\n  a\u0000b\u001b[31mc  ', 'a b [31mc'],
    ['', ''],
  ])('%j', (text, safe) => {
    expect(safeText(text)).toBe(safe)
  })

  test.each([
    'messages.0.content.1: Input should be a valid string',
    'The model `claude-sonnet-4-5-20250929` does not exist',
    '`tool_use` ids were found without `tool_result` blocks: toolu_01D7FLrfh4GYq7yT1ULFeyMV',
    'max_tokens: 8192 > 4096, which is the maximum for claude-3-opus-20240229',
    'Error while downloading https://e.example/a.png',
    'Invalid schema for function get_weather: key-value pairs expected',
  ])('what helps the client stays: %s', (text) => {
    expect(safeText(text)).toBe(text)
  })

  test('the instance’s own key and host are masked whatever they look like', () => {
    expect(safeText('plainkey at models.acme.example refused', ['plainkey', 'models.acme.example'])).toBe(
      '*** at *** refused',
    )
  })

  test('it is at most 500 characters of one line', () => {
    expect(safeText('é'.repeat(10_000))).toHaveLength(500)
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 2_000 }), (text) => {
        const safe = safeText(text)
        expect(safe.length).toBeLessThanOrEqual(500)
        expect(safe).not.toMatch(/\p{Cc}/u)
        expect(safe.isWellFormed()).toBe(true)
      }),
    )
  })
})
