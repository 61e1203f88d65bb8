import { Fault } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { openRateLimit } from '../../src/auth/rate-limit.ts'

const ann = { organization: 'o', user: 'ann' }
const bob = { organization: 'o', user: 'bob' }

function open(rateLimitRpm: number | undefined) {
  const clock = { ms: 1_700_000_000_000 }
  const settings = { rateLimitRpm }
  const limit = openRateLimit(settings, () => clock.ms)
  const refused = (who: typeof ann): Fault | undefined => {
    try {
      limit.take(who)
      return undefined
    } catch (error) {
      return Fault.from(error)
    }
  }
  return { clock, settings, refused }
}

describe('A-18 CFG-37 requests of a user in a minute', () => {
  test('A-18 the one after the limit is a 429 that says when to come back', () => {
    const { clock, refused } = open(3)
    for (let i = 0; i < 3; i++) {
      expect(refused(ann)).toBeUndefined()
      clock.ms += 10_000
    }
    expect(refused(ann)).toMatchObject({ status: 429, message: 'Rate limit exceeded', retryAfterSeconds: 30 })
  })

  test('A-18 the window slides: each request frees its own place after 60 s', () => {
    const { clock, refused } = open(2)
    expect(refused(ann)).toBeUndefined()
    clock.ms += 59_000
    expect(refused(ann)).toBeUndefined()
    clock.ms += 999
    expect(refused(ann)).toMatchObject({ retryAfterSeconds: 1 })
    clock.ms += 1
    expect(refused(ann)).toBeUndefined()
    expect(refused(ann)).toBeDefined()
    clock.ms += 58_999
    expect(refused(ann)).toBeDefined()
    clock.ms += 1
    expect(refused(ann)).toBeUndefined()
  })

  test('A-18 a refused request does not count', () => {
    const { clock, refused } = open(1)
    refused(ann)
    for (let i = 0; i < 59; i++) {
      clock.ms += 1_000
      expect(refused(ann)).toBeDefined()
    }
    clock.ms += 1_000
    expect(refused(ann)).toBeUndefined()
  })

  test('A-18 users do not share, nor do organizations', () => {
    const { refused } = open(1)
    expect(refused(ann)).toBeUndefined()
    expect(refused(bob)).toBeUndefined()
    expect(refused({ ...ann, organization: 'p' })).toBeUndefined()
    expect(refused(ann)).toBeDefined()
  })

  test('CFG-37 without a limit nothing is refused, and a changed limit counts at once', () => {
    const { settings, refused } = open(undefined)
    for (let i = 0; i < 1_000; i++) expect(refused(ann)).toBeUndefined()
    settings.rateLimitRpm = 1
    expect(refused(ann)).toBeUndefined()
    expect(refused(ann)).toBeDefined()
  })

  test('A-18 a limit that was lowered holds for what is in the window already', () => {
    const { clock, settings, refused } = open(3)
    for (let i = 0; i < 3; i++) {
      refused(ann)
      clock.ms += 10_000
    }
    settings.rateLimitRpm = 2
    expect(refused(ann)).toMatchObject({ retryAfterSeconds: 40 })
    clock.ms += 40_000
    expect(refused(ann)).toBeUndefined()
  })

  test('A-18 users beyond the bound push out whoever was quiet longest', () => {
    const { refused } = open(1)
    refused(ann)
    for (let i = 0; i < 100_000; i++) refused({ organization: 'o', user: `${i}` })
    expect(refused(ann)).toBeUndefined()
    expect(refused({ organization: 'o', user: '99999' })).toBeDefined()
  })
})
