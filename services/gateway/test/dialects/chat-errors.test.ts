import { Fault } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { chatError } from '../../src/dialects/chat/errors.ts'
import { faultOfStatus } from '../../src/models/upstream-errors.ts'
import { brokenAnswer } from '../../src/models/upstream-fault.ts'
import { Invalid } from '../../src/validation.ts'

const openAi = { name: 'up', wire: 'openai-chat', hidden: [] } as const
const anthropic = { ...openAi, wire: 'anthropic' } as const
const limits = {
  'retry-after': '180000',
  'x-ratelimit-limit-requests': '9',
  'anthropic-ratelimit-unified-status': 'rejected',
}

describe('a failure before the first byte, as a Chat client reads it', () => {
  test.each<[string, unknown, object]>([
    ['a refusal', new Fault('forbidden', 'no'), { status: 403, headers: {}, body: { detail: 'no' } }],
    [
      'a price that is missing',
      new Fault('pricing_required', 'p'),
      { status: 402, headers: {}, body: { detail: 'p', code: 'pricing_required' } },
    ],
    [
      'a wrong form',
      new Invalid([{ loc: ['body', 'x'], msg: 'm', type: 't' }]),
      { status: 422, headers: {}, body: { detail: [{ loc: ['body', 'x'], msg: 'm', type: 't' }] } },
    ],
    [
      'a bug',
      new TypeError('secret'),
      { status: 500, headers: { 'x-should-retry': 'false' }, body: { detail: 'something went wrong on our side' } },
    ],
    [
      'what will pass',
      new Fault('unavailable', 'busy', { retryAfterSeconds: 1.2 }),
      { status: 503, headers: { 'retry-after': '2' }, body: { detail: 'busy' } },
    ],
    [
      'what will not',
      new Fault('timeout', 'late'),
      { status: 504, headers: { 'x-should-retry': 'false' }, body: { detail: 'late' } },
    ],
    [
      'an answer that broke off',
      brokenAnswer('cut', openAi),
      { status: 502, headers: {}, body: { detail: "the model provider's answer broke off" } },
    ],
  ])('R-60 R-61 BR-148 %s', (_, thrown, expected) => {
    expect(chatError(thrown)).toEqual(expected)
  })

  test('BR-043 retry-after is kept as it came, quota headers where the upstream speaks this dialect', () => {
    const error = { error: { message: 'slow down' } }
    expect(chatError(faultOfStatus(openAi, 429, error, limits))).toEqual({
      status: 429,
      headers: limits,
      body: { detail: 'slow down' },
    })
    expect(chatError(faultOfStatus(anthropic, 429, error, limits)).headers).toEqual({ 'retry-after': '180000' })
    expect(chatError(faultOfStatus(anthropic, 529, error, limits))).toMatchObject({
      status: 503,
      headers: { 'retry-after': '180000' },
    })
  })
})
