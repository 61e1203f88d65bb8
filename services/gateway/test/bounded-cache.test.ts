import { describe, expect, test } from 'vitest'
import { boundedCache } from '../src/bounded-cache.ts'

function open(most: number, forMs: number) {
  const clock = { ms: 0 }
  return { clock, cache: boundedCache<number>(most, forMs, () => clock.ms) }
}

describe('a bounded cache', () => {
  test('keeps a value for its time and not a moment longer', () => {
    const { clock, cache } = open(10, 15_000)
    cache.set('a', 1)
    clock.ms = 14_999
    expect(cache.get('a')).toBe(1)
    clock.ms = 15_000
    expect(cache.get('a')).toBeUndefined()
    expect(cache.size).toBe(0)
  })

  test('being asked for does not make a value younger', () => {
    const { clock, cache } = open(10, 100)
    cache.set('a', 1)
    for (clock.ms = 0; clock.ms < 100; clock.ms += 10) expect(cache.get('a')).toBe(1)
    expect(cache.get('a')).toBeUndefined()
  })

  test('when full, lets go what was not asked for longest', () => {
    const { cache } = open(2, 100)
    cache.set('a', 1)
    cache.set('b', 2)
    cache.get('a')
    cache.set('c', 3)
    expect([cache.get('a'), cache.get('b'), cache.get('c'), cache.size]).toEqual([1, undefined, 3, 2])
  })

  test('setting what is there replaces it and lets go nothing', () => {
    const { cache } = open(2, 100)
    cache.set('a', 1)
    cache.set('b', 2)
    cache.set('b', 3)
    expect([cache.get('a'), cache.get('b')]).toEqual([1, 3])
  })

  test('forgets by what a value is', () => {
    const { cache } = open(10, 100)
    for (let n = 0; n < 6; n++) cache.set(`${n}`, n)
    cache.deleteWhere((value) => value % 2 === 0)
    expect(cache.size).toBe(3)
    cache.clear()
    expect(cache.size).toBe(0)
  })
})
