import { deflateSync } from 'node:zlib'
import { buildPdf, cjkPdf, type PdfStream, textPdf, unmappedPdf } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { notices } from '../src/extract/notices.ts'
import { checkPdfData } from '../src/extract/pdf/pdfjs.ts'
import { read, textFrom } from './reading.ts'
import { serving, sharedWorld, textOf } from './world.ts'

const PDF = 'application/pdf'
const CATALOG = '<< /Type /Catalog /Pages 2 0 R >>'
const onePage = (content: PdfStream, resources = '', more: (string | PdfStream)[] = []) =>
  buildPdf([
    CATALOG,
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> ${resources} >> >>`,
    content,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...more,
  ])

describe('what a PDF says', () => {
  test('lines, pages and paragraphs', async () => {
    const text = await textFrom(textPdf([['First (line)', 'second \\ line'], ['page two']]), PDF)
    expect(text).toBe('First (line)\nsecond \\ line\n\npage two')
  })

  test('BR-089 CJK text in predefined encodings, from data that lies beside the library', async () => {
    await checkPdfData()
    expect(await textFrom(cjkPdf('90ms-RKSJ-H', 'Japan1', '93FA967B8CEA'), PDF)).toBe('日本語')
    expect(await textFrom(cjkPdf('UniGB-UCS2-H', 'GB1', '4E2D6587'), PDF)).toBe('中文')
    expect(await textFrom(cjkPdf('GBK-EUC-H', 'GB1', 'D6D0CEC4'), PDF)).toBe('中文')
  })

  test('BR-088 fonts that name no characters are reported, with the page count, and no junk is shown', async () => {
    const result = await read(unmappedPdf([['002400250026', '0044004500460047'], ['0001000200030004']]), PDF)
    expect(result).toMatchObject({ status: 'ok', text: '', notices: [notices.pdfUnreadable(2)] })
  })

  test('BR-088 letters of an old bitmap font, which names them in its own way, are read by their codes', async () => {
    const codes = Array.from({ length: 95 }, (_, at) => at + 32)
    const font =
      '<< /Type /Font /Subtype /Type3 /FontBBox [0 0 600 800] /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 32 /LastChar 126 ' +
      `/Widths [${codes.map(() => 600).join(' ')}] /Encoding << /Differences [32 ${codes.map((code) => `/a${code}`).join(' ')}] >> ` +
      '/CharProcs << >> /Resources << >> >>'
    expect(await textFrom(textPdf([['Letters of a bitmap']], font), PDF, { format: 'text' })).toBe(
      'Letters of a bitmap',
    )
  })

  test('BR-088 a scan is reported', async () => {
    const scan = buildPdf([
      CATALOG,
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /I 5 0 R >> >> >>',
      { data: 'q 9 0 0 9 0 0 cm /I Do Q' },
      {
        dictionary: '/Type /XObject /Subtype /Image /Width 8 /Height 8 /ColorSpace /DeviceGray /BitsPerComponent 8',
        data: new Uint8Array(64),
      },
    ])
    expect(await read(scan, PDF)).toMatchObject({ status: 'ok', text: '', notices: [notices.pdfImages(1)] })
  })

  test('BR-088 tables of figures are no junk', async () => {
    const figures = ['1,204.50 2,318.00', '17 % 2024-01-31', 'A-12 B-13']
    expect(await textFrom(textPdf([figures]), PDF)).toBe(figures.join('\n'))
  })
})

describe('F-25 BR-090 bounds', () => {
  test('of 500 pages the first hundred are read, and it is said', async () => {
    const pages = Array.from({ length: 500 }, (_, at) => [`This is page number ${at + 1}.`])
    const result = await read(textPdf(pages), PDF)
    expect(result).toMatchObject({ status: 'ok', notices: [notices.pdfPages(1, 100, 500)] })
    const text = result.status === 'ok' ? result.text : ''
    expect(text).toContain('number 100.')
    expect(text).not.toContain('number 101.')
  })

  test('of more text than is handed over the first 256 KiB, and it is said', async () => {
    const pages = Array.from({ length: 100 }, () =>
      Array.from({ length: 50 }, () => 'words that fill a line of a page '.repeat(2)),
    )
    const result = await read(textPdf(pages), PDF)
    expect(result).toMatchObject({ status: 'ok', notices: [notices.parser] })
    expect(result.status === 'ok' && Buffer.byteLength(result.text)).toBeLessThanOrEqual(256 * 1024)
  })
})

/** A stream that is `sizeMiB` of one text when it is unpacked twice: a few KB. */
const bomb = (text: string, sizeMiB: number): Uint8Array =>
  deflateSync(deflateSync(Buffer.alloc(sizeMiB * 1024 * 1024, text), { level: 9 }), { level: 9 })

const plain = Buffer.from(textPdf([['text']])).toString('latin1')

/** What is written wrongly, or to do harm. Each ends, and says what became of it. */
const hostile: Record<string, Uint8Array> = {
  'an xref that leads to itself': Buffer.from(
    plain.replace('/Root', `/Prev ${/startxref\n(\d+)/.exec(plain)?.[1]} /Root`),
    'latin1',
  ),
  'a stream without an end': Buffer.from(plain.split('endstream')[0] ?? '', 'latin1'),
  'a page tree that holds itself': buildPdf([CATALOG, '<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>']),
  'a page tree of two that hold each other': buildPdf([
    CATALOG,
    '<< /Type /Pages /Kids [3 0 R 3 0 R] /Count 1000000 >>',
    '<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 1000000 /Parent 2 0 R >>',
  ]),
  'a count that is not true': buildPdf([CATALOG, '<< /Type /Pages /Kids [] /Count 2000000000 >>']),
  'a form that draws itself': buildPdf([
    CATALOG,
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /N 5 0 R >> >> >>',
    { data: '/N Do' },
    {
      dictionary: '/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /N 5 0 R >> >>',
      data: '/N Do /N Do',
    },
  ]),
  'forms that each draw ten others': onePage(
    { data: '/L0 Do' },
    '/XObject << /L0 6 0 R >>',
    Array.from({ length: 12 }, (_, at) => ({
      dictionary: `/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /Font << /F1 5 0 R >> /XObject << /L${at + 1} ${at + 7} 0 R >> >>`,
      data: at === 11 ? 'BT /F1 9 Tf (ha) Tj ET' : `/L${at + 1} Do `.repeat(10),
    })),
  ),
  'a Type3 letter that is drawn with itself': onePage({ data: 'BT /T 9 Tf (aaaa) Tj ET' }, '/Font << /T 6 0 R >>', [
    '<< /Type /Font /Subtype /Type3 /FontBBox [0 0 1 1] /FontMatrix [1 0 0 1 0 0] /FirstChar 97 /LastChar 97 /Widths [1] /Encoding << /Differences [97 /a] >> /CharProcs << /a 7 0 R >> /Resources << /Font << /T 6 0 R >> >> >>',
    { data: '1 0 d0 BT /T 1 Tf (aaaaaaaa) Tj ET' },
  ]),
  'a map of four thousand million characters': onePage({ data: 'BT /M 9 Tf <0041> Tj ET' }, '/Font << /M 6 0 R >>', [
    '<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /ToUnicode 7 0 R /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>] >>',
    {
      data: `/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00000000> <ffffffff> endcodespacerange ${'1 beginbfrange <00000000> <ffffffff> <0041> endbfrange '.repeat(100)} endcmap`,
    },
  ]),
  'two hundred thousand pages': buildPdf([
    CATALOG,
    `<< /Type /Pages /Kids [${'3 0 R '.repeat(200_000)}] /Count 200000 >>`,
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    { data: 'BT /F1 9 Tf (one) Tj ET' },
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]),
  'a page of a quarter GiB of text': onePage({
    data: bomb('BT /F1 9 Tf 9 9 Td (words of a page) Tj ET ', 256),
    dictionary: '/Filter [/FlateDecode /FlateDecode]',
  }),
  'nothing but a mark': Buffer.from('%PDF-1.7\n'),
  'rubbish after the mark': Buffer.concat([
    Buffer.from('%PDF-1.7\n'),
    Buffer.from('obj << endobj stream '.repeat(5_000)),
  ]),
  'arrays in arrays': onePage({ data: `${'['.repeat(100_000)}` }),
  'two GiB in a few KB': onePage({ data: bomb(' ', 1_024), dictionary: '/Filter [/FlateDecode /FlateDecode]' }),
  'operators without an end': onePage({ data: bomb('q Q ', 256), dictionary: '/Filter [/FlateDecode /FlateDecode]' }),
  'five thousand pages': textPdf(Array.from({ length: 5_000 }, (_, at) => [`Page ${at}`])),
}

describe('BR-090 hostile documents cost bounded time and hurt no one else', () => {
  const shared = sharedWorld({ settings: { threads: 2 } })
  const pages = serving({
    '/page': ['text/html', '<p>Text of a page.'],
    ...Object.fromEntries(Object.values(hostile).map((body, at) => [`/${at}`, [PDF, body]])),
  })

  test.each(Object.keys(hostile).map((name, at) => ({ name, at })))(
    '$name',
    async ({ at }) => {
      const world = shared().answering(pages)
      const answer = world.fetch(`http://site.test/${at}`)
      expect(textOf(await world.fetch('http://site.test/page')), 'a neighbour is read meanwhile').toBe(
        'Text of a page.',
      )
      const result = await answer
      if (result.status === 'ok')
        expect([result.text, ...result.notices], 'what was not read is said').not.toEqual([''])
      else
        expect(result).toMatchObject({
          failure: 'extraction_failed',
          reason: expect.stringMatching(/damaged|time|memory/),
        })
      expect(textOf(await world.fetch('http://site.test/page'))).toBe('Text of a page.')
    },
    60_000,
  )

  test('four broken ones at once, again and again, while other pages are read', async () => {
    const world = shared().answering(pages)
    for (let round = 0; round < 10; round++) {
      const calls = [0, 1, 2, 3].map((at) => world.fetch(`http://site.test/${at}`))
      const page = world.fetch('http://site.test/page')
      expect(textOf(await page)).toBe('Text of a page.')
      await Promise.all(calls)
    }
  }, 60_000)
})
