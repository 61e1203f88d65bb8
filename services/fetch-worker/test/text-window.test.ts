import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { countCodePoints, openWindow } from '../src/text-window.ts'
import { type Page, serving, sharedWorld } from './world.ts'

const maxBytes = 1_000_000
/** Emoji with joiners and skin tones, combining marks, flags, scripts of two and three bytes, and what is left of pairs. */
const text = fc.string({
  unit: fc.constantFrom('a', '\n', '"', 'é', 'e\u0301', '中', '😀', '👩🏽‍🚀', '🇫🇷', '𝒳', '\u200d', '\ud83d', '\ude00'),
  maxLength: 60,
})

describe('WM-32 windows', () => {
  test('WM-32 joined are the whole text, whatever their size, and none splits a code point', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 25 }), fc.integer({ min: 1, max: 40 }), (whole, maxChars, bytes) => {
        const wellFormed = whole.toWellFormed()
        const points = [...wellFormed]
        let offset: number | undefined = 0
        let joined = ''
        while (offset !== undefined) {
          const window = openWindow(wellFormed, { offset, maxChars, maxBytes: bytes })
          if (!window) throw new Error('no window begins past the end')
          expect(window.totalChars).toBe(points.length)
          expect(window.text.isWellFormed()).toBe(true)
          const count = [...window.text].length
          expect(window.text).toBe(points.slice(offset, offset + count).join(''))
          expect(count).toBeLessThanOrEqual(maxChars)
          if (window.nextOffset !== undefined) expect(window.nextOffset).toBe(offset + count)
          joined += window.text
          offset = window.nextOffset
        }
        expect(joined).toBe(wellFormed)
      }),
    )
  })

  test('WM-31 count code points, and a lone half of a pair as one', () => {
    fc.assert(fc.property(text, (whole) => countCodePoints(whole) === [...whole].length))
  })

  test('hold one code point at least, so that a walk ends', () =>
    expect(openWindow('😀b', { offset: 0, maxBytes: 1 })).toEqual({
      text: '😀',
      offset: 0,
      totalChars: 2,
      nextOffset: 1,
    }))

  test('WM-33 at the end are empty, and past it none', () => {
    expect(openWindow('ab', { offset: 2, maxBytes })).toEqual({ text: '', offset: 2, totalChars: 2 })
    expect(openWindow('ab', { offset: 3, maxBytes })).toBeUndefined()
    expect(openWindow('', { offset: 0, maxBytes })).toEqual({ text: '', offset: 0, totalChars: 0 })
    expect(openWindow('', { offset: 1, maxBytes })).toBeUndefined()
  })
})

describe('a page in windows', () => {
  const shared = sharedWorld()
  /** 700 kB: more than the extractor hands over when nobody pages. */
  const long = Array.from({ length: 70_000 }, (_, at) => `${at % 10} 中😀`).join('\n')
  const opened = (body: string) => shared().answering(serving({ '/t': ['text/plain; charset=utf-8', body] }))
  const ok = (page: Page) => {
    if (page.status === 'failed') throw new Error(page.failure)
    return page
  }

  test('WM-32 is whole when they are joined', async () => {
    const world = opened(long)
    let joined = ''
    let offset: number | undefined = 0
    let windows = 0
    while (offset !== undefined) {
      const input = { window: { offset, maxChars: 99_999 }, maxTextBytes: 4 * 1024 * 1024 }
      const page = ok(await world.fetch('http://site.test/t', input))
      expect(page).toMatchObject({ totalChars: [...long].length, offset, notices: [] })
      joined += page.text
      offset = page.nextOffset
      windows++
    }
    expect(joined === long).toBe(true)
    expect(windows).toBe(Math.ceil([...long].length / 99_999))
  })

  test('WM-31 counts what people take for characters, or nearly: code points', async () => {
    const world = opened('😀'.repeat(10))
    expect(await world.fetch('http://site.test/t', { window: { maxChars: 3 } })).toMatchObject({
      text: '😀😀😀',
      nextOffset: 3,
      totalChars: 10,
    })
  })

  test('is bounded in bytes as well, and goes on where it ended', async () => {
    const world = opened('中'.repeat(100))
    const input = { window: { offset: 10, maxChars: 50 }, maxTextBytes: 10 }
    expect(await world.fetch('http://site.test/t', input)).toMatchObject({ text: '中中中', offset: 10, nextOffset: 13 })
  })

  test('WM-33 has an end, and past it fails with its length', async () => {
    const world = opened('a😀')
    expect(await world.fetch('http://site.test/t', { window: { offset: 2 } })).toMatchObject({
      status: 'ok',
      text: '',
      totalChars: 2,
    })
    expect(await world.fetch('http://site.test/t', { window: { offset: 3 } })).toMatchObject({
      status: 'failed',
      failure: 'offset_past_end',
      totalChars: 2,
      httpStatus: 200,
    })
  })

  test('F-35 without windows is a beginning, as long as the extractor’s limit', async () => {
    const page = ok(await opened(long).fetch('http://site.test/t', { maxTextBytes: 1024 * 1024 }))
    expect(Buffer.byteLength(page.text)).toBeLessThanOrEqual(256 * 1024)
    expect(page.notices).toEqual(['[Extracted content truncated at the parser-output limit.]'])
    expect(page).not.toHaveProperty('nextOffset')
  })
})
