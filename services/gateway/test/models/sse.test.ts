import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type SseFrame, sseParser } from '../../src/models/sse.ts'

const read = (...chunks: (string | Buffer)[]): SseFrame[] => {
  const parser = sseParser()
  return [...chunks.flatMap((chunk) => parser.push(Buffer.from(chunk))), ...parser.end()]
}

describe('a stream of events is read as the specification has it', () => {
  test.each<[string, string, SseFrame[]]>([
    ['a frame', 'data: a\n\n', [{ event: '', data: 'a' }]],
    ['a frame without a space behind the colon', 'data:a\n\n', [{ event: '', data: 'a' }]],
    ['only one space is dropped', 'data:  a \n\n', [{ event: '', data: ' a ' }]],
    ['a named frame', 'event: ping\ndata: {}\n\n', [{ event: 'ping', data: '{}' }]],
    ['several data lines', 'data: a\ndata: b\n\n', [{ event: '', data: 'a\nb' }]],
    ['an empty data line', 'data:\n\n', [{ event: '', data: '' }]],
    ['a field without a colon', 'data\n\n', [{ event: '', data: '' }]],
    ['comments and unknown fields', ': hi\nid: 7\nretry: 3\ndata: a\n\n', [{ event: '', data: 'a' }]],
    ['a name without data is no frame', 'event: x\n\ndata: a\n\n', [{ event: '', data: 'a' }]],
    [
      'CRLF',
      'event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n',
      [
        { event: 'e', data: 'a' },
        { event: '', data: 'b' },
      ],
    ],
    [
      'CR',
      'data: a\r\rdata: b\r\r',
      [
        { event: '', data: 'a' },
        { event: '', data: 'b' },
      ],
    ],
    ['line ends of every kind together', 'data: a\r\ndata: b\rdata: c\n\n', [{ event: '', data: 'a\nb\nc' }]],
    ['a byte order mark', '\ufeffdata: a\n\n', [{ event: '', data: 'a' }]],
    ['half a frame at the end', 'data: a\n\ndata: b\n', [{ event: '', data: 'a' }]],
    ['half a line at the end', 'data: a\n\ndata: {"x', [{ event: '', data: 'a' }]],
    [
      'a [DONE] without its blank line',
      'data: a\n\ndata: [DONE]',
      [
        { event: '', data: 'a' },
        { event: '', data: '[DONE]' },
      ],
    ],
    ['a [DONE] with half of it', 'data: [DONE]\n', [{ event: '', data: '[DONE]' }]],
    ['nothing', '', []],
    ['only blank lines', '\n\n\r\n\r\n', []],
  ])('%s', (_, text, frames) => {
    expect(read(text)).toEqual(frames)
  })

  test('BR-020 the frames are the same however the bytes are cut', () => {
    const text = 'event: é\r\ndata: {"s":"\\"|;&& 漢字 😀"}\r\n\r\n: c\ndata:x\rdata: y\n\ndata: [DONE]\n\n'
    const bytes = Buffer.from(text)
    const whole = read(bytes)
    expect(whole).toHaveLength(3)
    expect(read(...Array.from(bytes, (byte) => Buffer.of(byte)))).toEqual(whole)
    for (let at = 0; at <= bytes.length; at++) expect(read(bytes.subarray(0, at), bytes.subarray(at))).toEqual(whole)
  })

  test('BR-020 any text survives in a data line, cut anywhere', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'binary' }), { maxLength: 5 }),
        fc.array(fc.nat(200), { maxLength: 8 }),
        (texts, cuts) => {
          const datas = texts.map((text) => JSON.stringify(text.toWellFormed()))
          const bytes = Buffer.from(datas.map((data) => `data: ${data}\n\n`).join(''))
          const at = [...cuts.map((cut) => Math.min(cut, bytes.length)), 0, bytes.length].sort((a, b) => a - b)
          const parts = at.slice(1).map((end, i) => bytes.subarray(at[i], end))
          expect(read(...parts).map(({ data }) => data)).toEqual(datas)
        },
      ),
    )
  })

  test('a frame past the bound is an upstream gone wrong, whether in one line, many lines or no line', () => {
    for (const text of [
      `data: ${'x'.repeat(200)}\n\n`,
      'data: x\n'.repeat(30),
      'x'.repeat(200),
      `:${'x'.repeat(200)}\n`,
    ]) {
      const parser = sseParser(100)
      expect(() => parser.push(Buffer.from(text))).toThrowError(/could not be read/)
    }
  })

  test('a bound counts for each frame anew', () => {
    const parser = sseParser(100)
    for (let i = 0; i < 50; i++) expect(parser.push(Buffer.from(`data: ${'x'.repeat(80)}\n\n`))).toHaveLength(1)
  })

  test('a frame in 16,000 reads costs no more than its length', () => {
    const parser = sseParser()
    const began = performance.now()
    parser.push(Buffer.from('data: '))
    for (let i = 0; i < 16_000; i++) parser.push(Buffer.alloc(512, 'x'))
    expect(parser.push(Buffer.from('\n\n'))[0]?.data).toHaveLength(16_000 * 512)
    expect(performance.now() - began).toBeLessThan(3_000)
  })
})
