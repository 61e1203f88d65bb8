import { textPdf } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { defaultExtractLimits } from '../src/extract/job.ts'
import { notices } from '../src/extract/notices.ts'
import { pdfDate } from '../src/extract/pdf/page.ts'
import { type Cipher, encryptedPdf } from './pdf-encrypted.ts'
import { column, type Placed, placedPdf } from './pdf-pages.ts'
import { parsed, read, textFrom } from './reading.ts'

const PDF = 'application/pdf'
const page = (lines: Placed[]) => placedPdf([{ lines }])
const markdown = (bytes: Uint8Array) => textFrom(bytes, PDF)

const left = [
  'The left column begins with this line of text',
  'and goes on with a second one that is as long',
  'as the third line, which ends with a sepa-',
  'rated word and fills the whole of its width.',
]
const right = [
  'The right column is read after the left one is',
  'at its end, which is what a person would do in',
  'a paper that is set in two columns, line after',
  'line, and never across the gap between them.',
]
const joined = (lines: string[]) => lines.join(' ').replace('sepa- rated', 'separated')

describe('F-17 a PDF is read in the order it is meant to be read', () => {
  const body = 'This line goes over the whole width of the page, from its left margin to the right one, and is full.'

  test('one column after the other, between lines over the whole width that stay where they are', async () => {
    const lines = [
      { text: 'A Paper in Two Columns', x: 150, y: 740, size: 20 },
      ...column(left, 60, 690),
      ...column(right, 320, 690),
      { text: body, x: 60, y: 620 },
      ...column(left, 60, 580).map((line) => ({ ...line, text: line.text.replace('The left', 'The lower left') })),
      ...column(right, 320, 580).map((line) => ({ ...line, text: line.text.replace('The right', 'The lower right') })),
    ]
    const expected = [
      '# A Paper in Two Columns',
      joined(left),
      joined(right),
      body,
      joined(left).replace('The left', 'The lower left'),
      joined(right).replace('The right', 'The lower right'),
    ]
    expect((await markdown(page(lines))).split('\n\n')).toEqual(expected)
    // the order things are drawn in says nothing
    expect((await markdown(page([...lines].reverse()))).split('\n\n')).toEqual(expected)
  })

  test('three columns', async () => {
    const texts = ['first', 'second', 'third'].map((name) =>
      Array.from({ length: 5 }, (_, at) => `${name} column with line ${at + 1} of five`),
    )
    const text = await markdown(page(texts.flatMap((lines, at) => column(lines, 50 + at * 185, 700))))
    expect(text.match(/first|second|third/g)).toEqual(
      ['first', 'second', 'third'].flatMap((name) => Array(5).fill(name)),
    )
  })

  test('a paragraph that goes on in the next column or on the next page is one', async () => {
    const open = ['This paragraph fills its column to the very end', 'and goes on where the next column begins with']
    const rest = ['words of the same sentence that ends over here.', 'Another sentence follows it in the same column.']
    const text = await markdown(page([...column([...open, ...open], 60, 700), ...column([...rest, ...rest], 320, 700)]))
    expect(text).toContain('begins with words of the same')
    const pages = placedPdf([
      { lines: column([...open, ...open], 60, 700) },
      { lines: column([...rest, ...rest], 60, 700) },
    ])
    expect(await markdown(pages)).toContain('begins with words of the same')
  })

  test.each([90, 180, 270])('a page that is turned by %i degrees', async (rotate) => {
    const lines = [...column(left, 60, 690), ...column(right, 320, 690)]
    expect(await markdown(placedPdf([{ lines, rotate }]))).toBe(`${joined(left)}\n\n${joined(right)}`)
  })

  test('text that is drawn upwards on a page that lies on its side', async () => {
    const turned = column(left, 0, 700).map(({ text, y }) => ({ text, x: 792 - y, y: 60 }))
    expect(await markdown(placedPdf([{ lines: turned, matrix: '0 1 -1 0', rotate: 90 }]))).toBe(joined(left))
  })

  test('running heads, feet and page numbers that repeat are left out, and what stands there once is not', async () => {
    const pages = Array.from({ length: 4 }, (_, at) => ({
      lines: [
        { text: 'Proceedings of the Society', x: 60, y: 770 },
        { text: `${at + 11}`, x: 540, y: 770 },
        { text: `Text of page ${['one', 'two', 'three', 'four'][at]} of this document.`, x: 60, y: 600 },
        { text: at === 2 ? 'A footnote of its own' : `Draft of 2024, page ${at + 1} of 4`, x: 60, y: 30 },
      ],
    }))
    const text = await markdown(placedPdf(pages))
    for (const name of ['one', 'two', 'three', 'four']) expect(text).toContain(`page ${name} of this`)
    expect(text).not.toMatch(/Proceedings|Draft|\b1[1-4]\b/)
    expect(text).toContain('A footnote of its own')
  })
})

describe('F-17 lines become paragraphs', () => {
  const filler = 'and this line is here to be as long as lines are on this page, so that it is full'

  test('a word that was parted is whole again; a compound keeps its hyphen where the document tells', async () => {
    const text = await markdown(
      page(
        column(
          [
            'A well-known rule says that the extraction of text has to be undone at the end, a well-',
            'known matter. Words like extraction are parted anywhere by those who set them: extrac-',
            'tion is one of these, and inter-',
          ],
          60,
          700,
        ),
      ),
    )
    expect(text).toContain('a well-known matter')
    expect(text).toContain('extraction is one')
    expect(text).not.toContain('extrac-')
  })

  test('a line that ends early was broken on purpose', async () => {
    const text = await markdown(page(column([filler, 'short line', 'another', filler, filler], 60, 700)))
    expect(text).toBe(`${filler} short line\nanother\n${filler} ${filler}`)
  })

  test('a wider gap and an indent part them', async () => {
    const lines = [...column([filler, filler], 60, 700), ...column([filler, `${filler}.`], 60, 660)]
    expect(await markdown(page(lines))).toBe(`${filler} ${filler}\n\n${filler} ${filler}.`)
  })

  test('small raised and lowered characters stay with their word', async () => {
    const lines = [
      { text: 'Water is H', x: 60, y: 700 },
      { text: '2', x: 106.9, y: 697, size: 6 },
      { text: 'O and so it stays', x: 110.4, y: 700 },
      { text: filler, x: 60, y: 688 },
    ]
    expect(await markdown(page(lines))).toContain('Water is H2O and so')
  })
})

describe('F-17 what the layout tells is told in Markdown', () => {
  const prose = Array.from(
    { length: 4 },
    (_, at) => `Line ${at} of the text under a heading, which is as long as any other line is.`,
  )

  test('headings by the size of their letters, and by weight', async () => {
    const bytes = page([
      { text: 'Largest of all', x: 60, y: 750, size: 24 },
      { text: 'A chapter', x: 60, y: 710, size: 16 },
      ...column(prose, 60, 680),
      { text: 'A section in bold', x: 60, y: 610, font: 'bold' },
      ...column(prose, 60, 590),
      { text: 'Another chapter', x: 60, y: 520, size: 16 },
      ...column(prose, 60, 490),
    ])
    const headings = parsed(await markdown(bytes)).all('heading')
    expect(headings.map(({ depth }) => depth)).toEqual([1, 2, 3, 2])
    expect(await textFrom(bytes, PDF, { format: 'text' })).not.toContain('#')
  })

  test('lists, and lists in them', async () => {
    const text = await markdown(
      page([
        ...column(prose, 60, 700),
        { text: '• Plum', x: 70, y: 630 },
        { text: '• Apple', x: 70, y: 618 },
        { text: '• Red apple', x: 95, y: 606 },
        { text: '• Pear', x: 70, y: 594 },
        { text: '1. First', x: 70, y: 560 },
        { text: '2. Second', x: 70, y: 548 },
      ]),
    )
    expect(text).toContain('- Plum\n- Apple\n  - Red apple\n- Pear')
    expect(parsed(text).listDepth()).toBe(2)
    expect(parsed(text).all('list').at(-1)).toMatchObject({ ordered: true })
  })

  const cells = [
    ['Name', 'Price', 'Stock'],
    ['Plum', '1.20', '7'],
    ['Apple | red', '0.80', '12'],
    ['Pear', '2.00', '31'],
  ]
  const table = cells.flatMap((row, at) => row.map((text, cell) => ({ text, x: 60 + cell * 120, y: 600 - at * 14 })))

  test('a table whose columns are certain', async () => {
    const text = await markdown(page([...column(prose, 60, 700), ...table]))
    expect(parsed(text).tables()).toEqual([cells])
  })

  test('the rest of a cell goes into its cell', async () => {
    const rest = { text: 'a piece', x: 180, y: 600 - 3 * 14 - 12 }
    const text = await markdown(page([...table, rest]))
    expect(parsed(text).tables()[0]?.at(-1)).toEqual(['Pear', '2.00 a piece', '31'])
  })

  test('a table whose columns are not keeps its rows, with cells apart', async () => {
    const odd = table.map((cell, at) =>
      at === 7 ? { ...cell, x: 120, text: 'a wide cell that lies over two of the columns' } : cell,
    )
    const text = await markdown(page(odd.filter((_, at) => at !== 8)))
    expect(text).not.toContain('|  ')
    expect(text).toContain('Name\tPrice\tStock')
    expect(text).toContain('Pear\t2.00\t31')
  })

  test('text in a fixed pitch keeps its lines and indents', async () => {
    const code = [
      { text: 'if (done) {', x: 60, y: 600, font: 'mono' as const },
      { text: 'return', x: 72, y: 588, font: 'mono' as const },
      { text: '}', x: 60, y: 576, font: 'mono' as const },
    ]
    expect(parsed(await markdown(page([...column(prose, 60, 700), ...code]))).code()).toEqual([
      'if (done) {\n  return\n}',
    ])
  })

  test('links where annotations give them, and only those that may be followed', async () => {
    const bytes = placedPdf([
      {
        lines: [
          { text: 'Read the report today.', x: 60, y: 700 },
          { text: 'Run this', x: 60, y: 650 },
        ],
        links: [
          { url: 'https://ex.test/report?a=1', box: [85, 695, 131, 712] },
          { url: 'javascript:alert\\(1\\)', box: [60, 645, 110, 662] },
        ],
      },
    ])
    const text = await markdown(bytes)
    expect(text).toMatch(/^Read \[the report\]\(https:\/\/ex\.test\/report\?a=1\) today\./)
    expect(text).not.toContain('javascript')
    expect(text).toContain('Run this')
  })

  test('text that looks like Markdown is text', async () => {
    const text = await markdown(page(column(['# no heading', '*no* stress', '<b>no tag</b>'], 60, 700)))
    expect(parsed(text).text.replace(/\s+/g, ' ')).toBe('# no heading *no* stress <b>no tag</b>')
  })
})

describe('what a PDF says of itself', () => {
  test('title, author, date and language', async () => {
    const info = "/Title (A Report) /Author (Ann Author) /CreationDate (D:20240131120000+01'00')"
    const bytes = placedPdf([{ lines: column(['Text'], 60, 700) }], { info })
    expect(await read(bytes, PDF)).toMatchObject({
      title: 'A Report',
      facts: { byline: 'Ann Author', published: '2024-01-31T12:00:00+01:00', language: 'en-GB' },
    })
  })

  test('a title that a program made up gives way to the first heading', async () => {
    const lines = [{ text: 'The Real Title', x: 60, y: 740, size: 22 }, ...column(left, 60, 700)]
    for (const made of ['Microsoft Word - draft.doc', 'untitled', 'paper.dvi', ''])
      expect(await read(placedPdf([{ lines }], { info: `/Title (${made})` }), PDF)).toMatchObject({
        title: 'The Real Title',
      })
  })

  test.each([
    ['D:2024', '2024'],
    ['D:20240131', '2024-01-31'],
    ['20240131', '2024-01-31'],
    ['D:20240131120000Z', '2024-01-31T12:00:00Z'],
    ["D:20240131120000-08'30'", '2024-01-31T12:00:00-08:30'],
    ['D:20241331', undefined],
    ['yesterday', undefined],
    ['', undefined],
  ])('the date %j', (text, date) => expect(pdfDate(text)).toBe(date))
})

describe('F-25 pages are read from a cursor', () => {
  const pages = Array.from({ length: 7 }, (_, at) => [`This is page number ${at + 1} here.`, 'It has a second line.'])
  const limits = { ...defaultExtractLimits, pdfPages: 3 }

  test('each answer says which pages it has and where the next one begins', async () => {
    const seen: string[] = []
    let next: number | undefined = 1
    const told: string[][] = []
    while (next !== undefined) {
      const result = await read(textPdf(pages), PDF, { limits, pdfPage: next })
      if (result.status !== 'ok') throw new Error(result.failure)
      seen.push(...(result.text.match(/number \d/g) ?? []))
      told.push(result.notices)
      next = result.nextPdfPage
    }
    expect(seen).toEqual(pages.map((_, at) => `number ${at + 1}`))
    expect(told).toEqual([[notices.pdfPages(1, 3, 7)], [notices.pdfPages(4, 6, 7)], [notices.pdfPages(7, 7, 7)]])
  })

  test('a page past the end is said to be none', async () => {
    const result = await read(textPdf(pages), PDF, { pdfPage: 8 })
    expect(result).toMatchObject({ status: 'ok', text: '', notices: [notices.pdfPastEnd(7)] })
  })

  test('blanks do not count as text', async () => {
    const blanks = [Array.from({ length: 60 }, () => ' '.repeat(500)), ['The text after the blanks.']]
    const result = await read(textPdf(blanks), PDF, { limits: { ...defaultExtractLimits, textBytes: 2_000 } })
    expect(result).toMatchObject({ status: 'ok', text: 'The text after the blanks.' })
  })
})

describe('encrypted files', () => {
  test.each<Cipher>(['RC4', 'AES-128', 'AES-256'])(
    '%s opens with the empty password, and is refused without the right one',
    async (cipher) => {
      expect(await markdown(encryptedPdf('Open to all who ask', cipher, ''))).toBe('Open to all who ask')
      expect(await read(encryptedPdf('Secret', cipher, 'opensesame'), PDF)).toEqual({
        status: 'failed',
        failure: 'password',
      })
    },
  )
})

describe('damaged files are read as far as they can be', () => {
  const whole = Buffer.from(page(column(left, 60, 700))).toString('latin1')
  test.each([
    ['without its table of objects', whole.replace(/xref\n[\s\S]*?trailer/, 'trailer')],
    ['with a table that points elsewhere', whole.replace(/\d{10} 00000 n/g, '0000000007 00000 n')],
    ['with bytes before its mark', `rubbish\n${whole}`],
    ['with a page tree that counts wrong', whole.replace('/Count 1', '/Count 99')],
  ])('%s', async (_name, text) =>
    expect(await markdown(Buffer.from(text, 'latin1'))).toContain('The left column begins'),
  )
})
