import { gzipSync } from 'node:zlib'
import { textPdf } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { read, textFrom } from './reading.ts'

const page = '<!doctype html><title>T</title><p>a paragraph</p>'

describe('F-17 what is read', () => {
  test.each([
    ['text/html', page, 'a paragraph'],
    [
      'application/xhtml+xml',
      '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><p>a paragraph</p></body></html>',
      'a paragraph',
    ],
    ['text/plain', 'a line', 'a line'],
    ['text/markdown', '# a <div> line', '# a <div> line'],
    ['text/x-python', 'if a < b: print("&amp;")', 'if a < b: print("&amp;")'],
    ['application/json', '{ "a":  1 }', '{ "a":  1 }'],
    ['application/problem+json', '{"a":1}', '{"a":1}'],
    ['application/xml', '<a><b/></a>', '<a><b/></a>'],
    [
      'image/svg+xml',
      '<svg xmlns="http://www.w3.org/2000/svg"><text>x</text></svg>',
      '<svg xmlns="http://www.w3.org/2000/svg"><text>x</text></svg>',
    ],
    ['application/javascript', 'const a = "<p>"', 'const a = "<p>"'],
    ['application/x-ndjson', '{"a":1}\n{"a":2}\n', '{"a":1}\n{"a":2}\n'],
    ['text/csv', 'a,b\n1,"<b>"\n', 'a,b\n1,"<b>"\n'],
  ])('%s', async (type, body, text) => expect(await textFrom(body, type)).toBe(text))

  test('application/pdf', async () => expect(await textFrom(textPdf([['a page']]), 'application/pdf')).toBe('a page'))

  test.each([
    'image/png',
    'application/zip',
    'video/mp4',
    'application/msword',
    'application/x-tar',
    'font/woff2',
    'audio/mpeg',
  ])('%s is not', async (type) => expect(await read(page, type)).toEqual({ status: 'failed', failure: 'unsupported' }))

  test('application/octet-stream only when its bytes are those of HTML or PDF', async () => {
    const type = 'application/octet-stream'
    expect(await textFrom(page, type)).toBe('a paragraph')
    expect(await textFrom(`\n <!-- x --> <HTML>${page}`, type)).toContain('a paragraph')
    expect(await textFrom(textPdf([['a page']]), type)).toBe('a page')
    for (const body of ['plain text', '{"a":1}', '<p>a fragment</p>', gzipSync(page)]) {
      expect(await read(body, type)).toEqual({ status: 'failed', failure: 'unsupported' })
    }
  })

  test('a binary body under a text’s name is not', async () => {
    const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
    for (const body of [png, 'a\u0000b', '\u0001\u0002\u0003\u0004 text', gzipSync('x')]) {
      for (const type of ['text/plain', 'text/html', undefined]) {
        expect(await read(body, type)).toEqual({ status: 'failed', failure: 'unsupported' })
      }
    }
  })
})

test('WM-38 WM-41 a NUL that slipped into a text is left out, and makes one binary that nobody named', async () => {
  const said = 'a paragraph of a page that is long enough to be one'
  for (const type of ['text/html', 'text/plain', 'application/json']) {
    expect(await textFrom(`<!doctype html><p>${said}\0`, type)).toContain(said)
    expect(await textFrom(`<!doctype html><p>${said}\0`, type)).not.toContain('\0')
  }
  expect(await read(`<!doctype html><p>${said}\0`)).toEqual({ status: 'failed', failure: 'unsupported' })
  expect(await read(`${said}${'\0'.repeat(said.length)}`, 'text/html')).toMatchObject({ failure: 'unsupported' })
})

describe('BR-100 text that is not HTML comes back as it is', () => {
  test('markup and entities inside JSON are its own', async () => {
    const json = '{"note":"tag <script> inside","txt":"R&amp;D"}'
    expect(await textFrom(json, 'application/json')).toBe(json)
    expect(JSON.parse(await textFrom(json, 'application/ld+json'))).toEqual({
      note: 'tag <script> inside',
      txt: 'R&amp;D',
    })
  })

  test('a body that nobody named is read as what it begins like', async () => {
    expect(await read(page)).toMatchObject({ kind: 'html', title: 'T', text: 'a paragraph' })
    expect(await read('<div><p>a</p></div>')).toMatchObject({ kind: 'html', text: 'a' })
    expect(await read('{"a": "<p>"}')).toMatchObject({ kind: 'text', text: '{"a": "<p>"}' })
    expect(await read('a < b and c > d')).toMatchObject({ kind: 'text', text: 'a < b and c > d' })
    expect(await read(textPdf([['a page']]))).toMatchObject({ kind: 'pdf', text: 'a page' })
  })

  test('text/html without a tag is text, and text/plain that is a page is HTML', async () => {
    expect(await read('just words\n  kept & as they are', 'text/html')).toMatchObject({
      kind: 'text',
      text: 'just words\n  kept & as they are',
    })
    expect(await read(page, 'text/plain')).toMatchObject({ kind: 'html', text: 'a paragraph' })
    expect(await read('see <div> and <p>', 'text/plain')).toMatchObject({ kind: 'text' })
  })

  test('BR-101 an empty body is a page that says it is empty', async () => {
    for (const type of ['text/html', 'application/json', 'application/pdf', undefined]) {
      expect(await read('', type)).toEqual({ status: 'ok', kind: 'text', text: '', notices: ['[The page is empty.]'] })
    }
    expect(await read(' \n ', 'text/plain')).toMatchObject({ notices: ['[The page is empty.]'] })
  })
})

describe('F-35 the limit of what is handed back', () => {
  test('a text of 1 MiB is cut at 256 KiB and says so', async () => {
    const result = await read('ü'.repeat(512 * 1024), 'text/plain')
    expect(result).toMatchObject({ notices: ['[Extracted content truncated at the parser-output limit.]'] })
    expect(result.status === 'ok' && Buffer.byteLength(result.text)).toBe(256 * 1024)
  })

  test('so is a page of that size', async () => {
    const result = await read(
      `<h1>T</h1>${'<p>a paragraph of a long page, and more of it.</p>'.repeat(20_000)}`,
      'text/html',
    )
    expect(result).toMatchObject({ notices: ['[Extracted content truncated at the parser-output limit.]'] })
    expect(result.status === 'ok' && Buffer.byteLength(result.text)).toBeLessThanOrEqual(256 * 1024)
  })

  test('F-23 a body that was cut at the size limit says so, unless it is a PDF, which is not read', async () => {
    expect(await read('some text', 'text/plain', { isCut: true })).toMatchObject({
      text: 'some text',
      notices: ['[Source content truncated at the 5 MiB response limit.]'],
    })
    expect(await read(textPdf([['x']]), 'application/pdf', { isCut: true })).toEqual({
      status: 'failed',
      failure: 'cut',
    })
  })
})
