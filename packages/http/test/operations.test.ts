import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openOperations } from '../src/operations.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const opened = (operationTimeoutMs?: number, ms = 120_000) => {
  const parent = new AbortController()
  const limits = { deadline: Date.now() + ms, ...(operationTimeoutMs === undefined ? {} : { operationTimeoutMs }) }
  return { parent, operations: openOperations(limits, parent.signal) }
}

describe('WM-21 the clocks of a download', () => {
  test('WM-21 connecting has ten seconds, or less where less is wanted', () => {
    for (const [operationTimeoutMs, mostMs] of [
      [60_000, 10_000],
      [10_001, 10_000],
      [1_000, 1_000],
    ] as const) {
      for (const stage of ['connect', 'tls', 'proxy'] as const) {
        const { operations } = opened(operationTimeoutMs)
        operations.begin(stage)
        vi.advanceTimersByTime(mostMs - 1)
        expect(operations.signal.aborted).toBe(false)
        vi.advanceTimersByTime(1)
        expect(operations).toMatchObject({ expired: true, stage, signal: { aborted: true } })
      }
    }
  })

  test('WM-21 every other wait has its own time, anew with each piece of a body', () => {
    const { operations } = opened(30_000, 600_000)
    for (const stage of ['resolve', 'headers', 'body', 'body', 'body'] as const) {
      operations.begin(stage)
      vi.advanceTimersByTime(29_999)
      expect(operations.expired, stage).toBe(false)
    }
    vi.advanceTimersByTime(1)
    expect(operations.expired).toBe(true)
  })

  test('WM-21 the ceiling ends what never waits too long', () => {
    const { operations } = opened(30_000)
    operations.begin('body')
    for (let second = 0; second < 119; second++) {
      vi.advanceTimersByTime(1_000)
      operations.begin('body')
    }
    expect(operations.expired).toBe(false)
    vi.advanceTimersByTime(1_000)
    expect(operations).toMatchObject({ expired: true, stage: 'body' })
  })

  test('without a limit of their own waits have the deadline alone', () => {
    const { operations } = opened(undefined, 300_000)
    operations.begin('connect')
    vi.advanceTimersByTime(299_999)
    expect(operations.expired).toBe(false)
    vi.advanceTimersByTime(1)
    expect(operations.expired).toBe(true)
  })

  test('a caller who leaves is no clock, and nothing is left running', () => {
    const { operations, parent } = opened(1_000)
    operations.begin('body')
    parent.abort(new Error('left'))
    expect(operations.signal.reason).toMatchObject({ message: 'left' })
    expect(operations.expired).toBe(false)
    operations.end()
    expect(vi.getTimerCount()).toBe(0)
  })
})
