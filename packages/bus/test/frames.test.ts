import { Fault } from '@tollgate/contracts'
import { constantFrom, assert as holds, integer, property, string, tuple } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { faultFromJson, faultToJson } from '../src/faults.ts'
import { bodyFrames, frame, type Outcome, Reply, readFrame } from '../src/frames.ts'

const KIB = 1024
const send = (reply: Reply, frames: Iterable<Buffer>): Outcome | undefined => {
  let outcome: Outcome | undefined
  for (const bytes of frames) outcome = reply.take(readFrame(bytes))
  return outcome
}

describe('the frames of a reply', () => {
  test('carry any text whole, in messages that any server takes', async () => {
    const texts = tuple(constantFrom('x', '€', '𝄞', '\u0001', '"'), integer({ min: 0, max: 600 * KIB }), string())
    await holds(
      property(texts, ([unit, count, end]) => {
        const json = JSON.stringify(unit.repeat(count / Buffer.byteLength(unit)) + end)
        const frames = [...bodyFrames(1, json)]
        expect(send(new Reply(undefined), frames)).toEqual({ json })
        expect(Math.max(...frames.map((bytes) => bytes.length))).toBeLessThan(257 * KIB)
      }),
      { numRuns: 60 },
    )
  })

  test('are one for a small answer', () => {
    expect([...bodyFrames(1, '{}')].map(String)).toEqual(['end 1 0\n{}'])
  })

  test('of an attempt that was taken over are dropped, whenever they come', async () => {
    const [old, fresh] = ['a', 'b'].map((unit) => JSON.stringify(unit.repeat(700 * KIB)))
    const before = [...bodyFrames(1, old ?? '')]
    const after = [...bodyFrames(2, fresh ?? '')]
    await holds(
      property(integer({ min: 0, max: before.length }), integer({ min: 1, max: after.length }), (seen, at) => {
        const mixed = [...before.slice(0, seen), ...after.slice(0, at), ...before.slice(seen), ...after.slice(at)]
        const reply = new Reply(undefined)
        const outcomes = mixed.map((bytes) => reply.take(readFrame(bytes))).filter((outcome) => outcome !== undefined)
        expect(outcomes).toEqual(seen === before.length ? [{ json: old }, { json: fresh }] : [{ json: fresh }])
      }),
    )
  })

  test('that are sent again from the start after a cut make one answer', () => {
    const json = JSON.stringify('x'.repeat(700 * KIB))
    const frames = [...bodyFrames(1, json)]
    expect(send(new Reply(undefined), [...frames.slice(0, 2), ...frames])).toEqual({ json })
  })

  test('that do not all arrive make no answer', () => {
    const frames = [...bodyFrames(1, JSON.stringify('x'.repeat(700 * KIB)))]
    for (const missing of frames.slice(0, -1).keys()) {
      const outcome = send(new Reply(undefined), frames.toSpliced(missing, 1))
      expect(outcome).toMatchObject({ fault: { failure: 'unavailable' }, again: 'idempotent' })
    }
  })

  test('end when they are more than may travel, however many more would come', () => {
    const reply = new Reply(undefined)
    const part = 'x'.repeat(256 * KIB)
    const outcomes = Array.from({ length: 33 }, (_, index) => reply.take(readFrame(frame('part', 1, part, index))))
    expect(outcomes.slice(0, 32)).toEqual(Array.from({ length: 32 }))
    expect(outcomes[32]).toMatchObject({ fault: { failure: 'too_large' }, again: 'never' })
  })

  test.each(['', 'end', 'end 1 0', '{"stream":"X"}\n', 'finish 1 0\n{}'])('are not "%s"', (text) => {
    expect(() => readFrame(Buffer.from(text))).toThrow(Fault)
  })

  test.each([
    ['error', 'never'],
    ['refused', 'always'],
    ['interrupted', 'idempotent'],
  ] as const)('say with `%s` who may try again: %s', (kind, again) => {
    const fault = new Fault('unavailable', 'why', { retryAfterSeconds: 3, cause: new Error('secret') })
    const bytes = frame(kind, 1, faultToJson(fault))
    expect(bytes.toString()).not.toContain('secret')
    const outcome = new Reply(undefined).take(readFrame(bytes))
    expect(outcome).toMatchObject({ again, fault: { failure: 'unavailable', message: 'why', retryAfterSeconds: 3 } })
  })
})

describe('a failure from a later release', () => {
  test('whose name is not known is `internal`', () => {
    const fault = faultFromJson(JSON.stringify({ failure: 'out_of_cheese', message: 'why', colour: 'red' }))
    expect(fault).toMatchObject({ failure: 'internal', message: 'why' })
    expect(faultFromJson(JSON.stringify({ failure: 'toString', message: '' })).failure).toBe('internal')
  })
})
