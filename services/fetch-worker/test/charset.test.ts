import { describe, expect, test } from 'vitest'
import { decode } from '../src/extract/charset.ts'
import { declaredCharset, mediaType } from '../src/extract/content-type.ts'
import { read, textFrom } from './reading.ts'

const bytes = (...values: (number | string)[]): Uint8Array =>
  Buffer.concat(
    values.map((value) => (typeof value === 'string' ? Buffer.from(value, 'latin1') : Buffer.from([value]))),
  )
/** 東京の天気, 中文 and 日本 in the encodings of their countries. */
const tokyo = bytes(0x93, 0x8c, 0x8b, 0x9e, 0x82, 0xcc, 0x93, 0x56, 0x8b, 0x43)
const chinese = bytes(0xd6, 0xd0, 0xce, 0xc4)

describe('BR-081 the header’s charset', () => {
  test.each([
    'text/plain; charset=gbk',
    'text/plain;charset="GBK"',
    'text/plain; Charset=gbk',
    "text/plain; x=y; charset='gbk'; z",
  ])('is honoured: %s', async (header) => expect(await textFrom(chinese, header)).toBe('中文'))

  test('is honoured for HTML, JSON and whatever else is text', async () => {
    expect(await textFrom(bytes('<p>', ...chinese, '</p>'), 'text/html; charset=gbk')).toBe('中文')
    expect(await textFrom(bytes('{"a":"', 0xe9, '"}'), 'application/json;charset=iso-8859-1')).toBe('{"a":"é"}')
    expect(await textFrom(tokyo, 'text/csv; charset=shift_jis')).toBe('東京の天気')
    expect(decode(tokyo, 'text/html; charset=shift_jis', false)).toBe('東京の天気')
  })
})

describe('BR-082 the document’s own charset', () => {
  const page = (before: string, charset: string) =>
    bytes(before, `<meta charset="${charset}"><title>`, ...tokyo, '</title><p>', ...tokyo, '</p>')

  test.each([
    ['a meta element', page('', 'Shift_JIS')],
    ['a meta after a comment of 900 bytes', page(`<!-- ${'x'.repeat(900)} -->`, 'shift_jis')],
    ['a commented meta before the real one', page('<!-- <meta charset="utf-8"> -->', 'shift_jis')],
    [
      'http-equiv',
      bytes(
        '<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS"><title>',
        ...tokyo,
        '</title><p>',
        ...tokyo,
        '</p>',
      ),
    ],
  ])('is used when the header names none: %s', async (_what, body) => {
    expect(await read(body, 'text/html')).toMatchObject({ status: 'ok', title: '東京の天気', text: '東京の天気' })
  })

  test('gives way to the header', async () => {
    const utf8 = new TextEncoder().encode('<meta charset="shift_jis"><title>東京の天気</title><p>東京の天気</p>')
    expect(await read(utf8, 'text/html; charset=utf-8')).toMatchObject({ title: '東京の天気', text: '東京の天気' })
  })

  test('may be in an XML declaration', async () => {
    const body = bytes('<?xml version="1.0" encoding="GBK"?><a>', ...chinese, '</a>')
    expect(await textFrom(body, 'application/xml')).toContain('中文')
  })
})

describe('BR-084 odd charsets', () => {
  test('a byte-order mark comes first and is no part of the text', async () => {
    expect(await textFrom(bytes(0xef, 0xbb, 0xbf, ...Buffer.from('é')), 'text/plain; charset=iso-8859-1')).toBe('é')
    expect(await textFrom(bytes(0xff, 0xfe, 0x2d, 0x4e, 0x87, 0x65), 'text/plain')).toBe('中文')
    expect(await textFrom(bytes(0xfe, 0xff, 0x4e, 0x2d, 0x65, 0x87), 'text/plain')).toBe('中文')
  })

  test('gb2312 means GBK', async () =>
    expect(await textFrom(bytes(0xe9, 0x46), 'text/plain; charset=gb2312')).toBe('镕'))

  test('an unknown label falls through to the next source', async () => {
    const utf8 = new TextEncoder().encode('<meta charset="bar-9"><p>é</p>')
    expect(await textFrom(utf8, 'text/html; charset=foo-8')).toBe('é')
    expect(await textFrom(bytes('<meta charset="gbk"><p>', ...chinese, '</p>'), 'text/html; charset=foo-8')).toBe(
      '中文',
    )
  })

  test('a meta that claims UTF-16 is read as UTF-8', async () => {
    const utf8 = new TextEncoder().encode('<meta charset="utf-16"><p>é</p>')
    expect(await textFrom(utf8, 'text/html')).toBe('é')
  })
})

describe('F-34 what is not text', () => {
  test('ISO-8859-1 by its name, and bytes that are no UTF-8 become replacement marks', async () => {
    expect(await textFrom(bytes('caf', 0xe9), 'text/plain; charset=iso-8859-1')).toBe('café')
    expect(await textFrom(bytes('caf', 0xe9, '!'), 'text/plain')).toBe('caf\ufffd!')
    expect(await textFrom(bytes('<p>caf', 0xe9, '!</p>'), 'text/html')).toBe('caf\ufffd!')
  })

  test('leaves no control character but tab and newline, in text and in pages', async () => {
    expect(await textFrom('a\u0007b\u001bc\td\r\ne\rf\u0085g\u007f', 'text/plain')).toBe('abc\td\ne\nfg')
    expect(await textFrom('<p>a&#7;b\u001bc&#x85;</p><p>d\u009fe</p>')).toMatch(/^abc…?\n\nde$/)
  })

  test('a lone surrogate is replaced', async () => {
    expect((await textFrom('{"a":"x"}', 'application/json')).isWellFormed()).toBe(true)
    expect((await textFrom('<p>&#xD800; x</p>')).isWellFormed()).toBe(true)
  })

  test('a character that the size limit cut is dropped, not replaced', async () => {
    const whole = new TextEncoder().encode('aé中')
    expect(await textFrom(whole.slice(0, -1), 'text/plain', { isCut: true })).toBe('aé')
    expect(await textFrom(whole.slice(0, -1), 'text/plain', { isCut: false })).toBe('aé\ufffd')
  })
})

test.each([
  ['text/html; charset=utf-8', 'text/html', 'utf-8'],
  ['TEXT/HTML', 'text/html', undefined],
  ['application/ld+json;charset=UTF-8', 'application/ld+json', 'UTF-8'],
  ['text/html;charset=', 'text/html', undefined],
  ['nonsense', undefined, undefined],
  ['', undefined, undefined],
])('the header %j names %s and %s', (header, type, charset) => {
  expect([mediaType(header), declaredCharset(header)]).toEqual([type, charset])
})
