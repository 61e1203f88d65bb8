import { textPdf } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { notices } from '../src/extract/notices.ts'
import { serving, sharedWorld, textOf } from './world.ts'

const shared = sharedWorld()
const get = (contentType: string | undefined, body: string | Uint8Array, status?: number) =>
  shared()
    .answering(serving({ '/': [contentType, body, status] }))
    .fetch('http://site.test/')

const pdf = textPdf([['Text of a PDF']])
const html = '<!doctype html><title>T</title><p>Text of <b>a page</b>'
const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

describe('F-17 one URL per type', () => {
  test.each<[contentType: string | undefined, body: string | Uint8Array, text: string]>([
    ['text/html', html, 'Text of **a page**'],
    ['TEXT/HTML ; charset="utf-8"', html, 'Text of **a page**'],
    ['application/xhtml+xml', `<?xml version="1.0"?>${html}`, 'Text of **a page**'],
    ['text/plain', 'plain', 'plain'],
    ['text/markdown', '# A\n\n<div>', '# A\n\n<div>'],
    ['text/csv', 'a,b\n1,2', 'a,b\n1,2'],
    ['application/json', '{"a":1}', '{"a":1}'],
    ['application/problem+json; charset=utf-8', '{"a":1}', '{"a":1}'],
    ['application/xml', '<a>1</a>', '<a>1</a>'],
    ['text/xml', '<a>1</a>', '<a>1</a>'],
    ['image/svg+xml', '<svg><text>1</text></svg>', '<svg><text>1</text></svg>'],
    ['application/javascript', 'f(1 < 2)', 'f(1 < 2)'],
    ['text/javascript', 'f(1 < 2)', 'f(1 < 2)'],
    ['application/x-ndjson', '{}\n{}', '{}\n{}'],
    ['application/pdf', pdf, 'Text of a PDF'],
    ['application/octet-stream', pdf, 'Text of a PDF'],
    ['application/octet-stream', html, 'Text of **a page**'],
    ['text/plain', pdf, 'Text of a PDF'],
    [undefined, html, 'Text of **a page**'],
    [undefined, '{"a":"<p>"}', '{"a":"<p>"}'],
    ['nonsense', 'text', 'text'],
  ])('%s', async (contentType, body, text) => expect(textOf(await get(contentType, body))).toBe(text))

  test.each<[contentType: string | undefined, body: string | Uint8Array]>([
    ['application/octet-stream', 'just text'],
    ['application/octet-stream', png],
    ['image/png', png],
    ['text/plain', png],
    [undefined, png],
    [undefined, 'PK\x03\x04'],
    ['application/zip', 'PK\x03\x04'],
    ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'PK\x03\x04'],
    ['video/mp4', 'x'],
    ['multipart/form-data', 'x'],
  ])('and what is not read: %s', async (contentType, body) =>
    expect(await get(contentType, body)).toEqual({
      status: 'failed',
      failure: 'unsupported_type',
      httpStatus: 200,
      declared: contentType === undefined ? {} : { contentType },
      label: 'builtin:builtin_fetch',
    }),
  )

  test('a body that is not wanted is not waited for', async () => {
    const world = shared().answering((_request, response) => {
      response.writeHead(200, { 'content-type': 'video/mp4' }).write('without an end')
    })
    expect(textOf(await world.fetch('http://site.test/'))).toBe('unsupported_type')
  })

  test('the media type is told without its parameters, and left out when there is none', async () => {
    expect(await get('Text/HTML; charset=utf-8', html)).toMatchObject({ contentType: 'text/html', title: 'T' })
    expect(await get(undefined, html)).not.toHaveProperty('contentType')
  })

  test('BR-100 JSON stays parseable all the way', async () => {
    const value = { note: 'tag <script> inside', txt: 'R&amp;D', deep: ['\u2028', 'é', '😀'] }
    expect(JSON.parse(textOf(await get('application/json', JSON.stringify(value, null, 2))))).toEqual(value)
  })
})

describe('F-34 what leaves is clean', () => {
  const latin1 = (text: string) => Buffer.from(text, 'latin1')

  test('a page in ISO-8859-1', async () =>
    expect(textOf(await get('text/html; charset=ISO-8859-1', latin1('<p>café crème')))).toBe('café crème'))

  test('bytes of no character become replacement characters, and controls nothing', async () => {
    const text = textOf(
      await get('text/plain; charset=utf-8', latin1('a\xff\xc3b\x1b[1mc\x07\x7f\xc2\x85d\te\r\nf\rg')),
    )
    expect(text).toBe('a\ufffd\ufffdb[1mcd\te\nf\ng')
  })

  test('characters that a page names by number are clean too, and its title', async () => {
    const page = await get('text/html', '<title>&#1;T\n&#x1b;t</title><p>a&#0;b&#x1f;c&#xd800;d&#x7f;e')
    expect(page).toMatchObject({ status: 'ok', title: 'T t' })
    expect(textOf(page)).not.toMatch(/[^\P{Cc}\n\t]/u)
    expect(textOf(page).isWellFormed()).toBe(true)
  })
})

describe('BR-101 the status is judged before the content', () => {
  test.each<[name: string, contentType: string | undefined, body: string, status: number]>([
    ['a JSON error', 'application/json', '{"error":"x"}', 404],
    ['a text error', 'text/plain', 'bad gateway', 502],
    ['a page of 5 kB', 'text/html', `<title>Origin</title><p>${'words '.repeat(800)}`, 522],
    ['an error that is no text', 'image/png', 'picture', 500],
    ['too many requests', 'text/plain', 'slow down', 429],
    ['no access', 'text/html', '<p>log in', 401],
  ])('%s, each time it is asked for', async (_name, contentType, body, httpStatus) => {
    for (let again = 0; again < 2; again++) {
      const result = await get(contentType, body, httpStatus)
      expect(result).toEqual({ status: 'failed', failure: 'http_status', httpStatus, label: 'builtin:builtin_fetch' })
      expect(shared().site.requests).toHaveLength(1)
    }
  })

  test.each<[contentType: string | undefined, status: number]>([
    [undefined, 204],
    ['text/html', 200],
    ['text/plain', 200],
    [undefined, 200],
    ['application/pdf', 200],
  ])('an empty answer of type %s and status %d is a page that is empty', async (contentType, status) =>
    expect(await get(contentType, '', status)).toMatchObject({ status: 'ok', text: '', notices: [notices.empty] }),
  )

  test('a challenge for browsers is no page, and an article about one is', async () => {
    const title = '<!doctype html><title>Just a moment...</title>'
    const challenge = `${title}<script>window._cf_chl_opt={cType:'managed'}</script><noscript>Enable JavaScript and cookies to continue</noscript>`
    expect(await get('text/html', challenge)).toMatchObject({
      status: 'failed',
      failure: 'extraction_failed',
      reason: 'bot_protection',
    })
    const article = `${title}<article><p>${'The variable _cf_chl_opt belongs to a challenge. '.repeat(40)}</p></article>`
    expect(textOf(await get('text/html', article))).toContain('belongs to a challenge')
  })
})
