import { describe, expect, test } from 'vitest'
import { isoDate } from '../src/dates.ts'
import { admit, showHit } from '../src/results.ts'
import { clean, clip, oneLine } from '../src/text.ts'

const everywhere = { allowedDomains: null, blockedDomains: [] }
const hit = (url: string, title = 'Title') => ({ title, url, snippet: 'snippet' })
const admitted = (urls: string[], policy = {}) =>
  admit(
    urls.map((url) => hit(url)),
    { ...everywhere, ...policy },
    100,
  ).map(({ url }) => url)

describe('dates', () => {
  test.each([
    ['2026-10-05', '2026-10-05'],
    [' 2026-10-05 ', '2026-10-05'],
    ['2026-10-05T10:00:00Z', '2026-10-05T10:00:00Z'],
    ['2026-10-05T10:00Z', '2026-10-05T10:00:00Z'],
    ['2026-10-05T10:00:00.547Z', '2026-10-05T10:00:00Z'],
    ['2026-10-05T10:00:00', '2026-10-05T10:00:00Z'],
    ['2026-10-05 10:00:00+0000', '2026-10-05T10:00:00Z'],
    ['2026-10-05T10:00:00+02:00', '2026-10-05T08:00:00Z'],
    ['2026-10-05T23:30:00-0130', '2026-10-06T01:00:00Z'],
    ['2024-02-29', '2024-02-29'],
    ['Mon, 05 Oct 2026 10:00:00 GMT', '2026-10-05T10:00:00Z'],
    ['5 Oct 2026 10:00 +0100', '2026-10-05T09:00:00Z'],
    ['05 Oct 2026', '2026-10-05'],
  ])('S-46 SP-20 reads %j as %s', (text, expected) => {
    expect(isoDate(text)).toBe(expected)
  })

  test.each([
    '',
    'yesterday',
    '3 days ago',
    '2026',
    '2026-13-01',
    '2026-02-30',
    '2025-02-29',
    '2026-10-05T25:00:00Z',
    '2026-10-05T10:60:00Z',
    '2026-10-05T10:00:00+99:00',
    '05/10/2026',
    'Mon, 32 Oct 2026 10:00:00 GMT',
    'Mon, 05 Foo 2026 10:00:00 GMT',
    '1791194400',
    '2026-10-05\n[1] forged',
  ])('SP-20 takes %j for no date', (text) => {
    expect(isoDate(text)).toBeUndefined()
  })

  test('S-46 leaves the member out when there is no date to show', () => {
    expect(showHit({ ...hit('https://a.test/'), date: 'soon' }, '')).not.toHaveProperty('date')
    expect(showHit({ ...hit('https://a.test/'), date: '2026-10-05' }, '').date).toBe('2026-10-05')
  })
})

describe('text', () => {
  test.each([
    ['exactly the limit', 'a'.repeat(1_500), 'a'.repeat(1_500)],
    ['one character more', 'a'.repeat(1_501), `${'a'.repeat(1_499)}…`],
    ['1,500 characters of four bytes', '😀'.repeat(1_500), '😀'.repeat(1_500)],
    ['1,501 of them', '😀'.repeat(1_501), `${'😀'.repeat(1_499)}…`],
    ['far more', '😀'.repeat(100_000), `${'😀'.repeat(1_499)}…`],
    ['a pair across the limit', `${'a'.repeat(1_498)}😀😀😀`, `${'a'.repeat(1_498)}😀…`],
    ['nothing', '', ''],
  ])('S-47 cuts a body at 1,500 characters and never inside one: %s', (_name, text, expected) => {
    const shown = showHit(hit('https://a.test/'), text).text
    expect(shown).toBe(expected)
    expect(shown.isWellFormed()).toBe(true)
  })

  test('S-47 gives back valid text for lone surrogates and control characters', () => {
    expect(clean('a\ud83d b\u0000c\u0007\u2028d\r\ne\tf')).toBe('a\ufffd b c  d\ne\tf')
    expect(clean('\n\n a \n\n\n\n b \n')).toBe('a\n\n b')
  })

  test('BR-073 shows the URL where a title is missing, and no title on two lines', () => {
    expect(showHit(hit('https://a.test/x', ''), '').title).toBe('https://a.test/x')
    expect(showHit(hit('https://a.test/x', ' \n\t '), '').title).toBe('https://a.test/x')
    expect(showHit(hit('https://a.test/x', 'One\n[2] Two'), '').title).toBe('One [2] Two')
    expect(Array.from(showHit(hit('https://a.test/x', 'é'.repeat(5_000)), '').title)).toHaveLength(300)
  })

  test('counts what is cut in characters and marks it', () => {
    expect(clip('abc', 3)).toBe('abc')
    expect(clip('abcd', 3)).toBe('ab…')
    expect(clip('ab  cd', 4)).toBe('ab…')
    expect(oneLine('a \n b')).toBe('a b')
  })
})

describe('which hits may be shown', () => {
  test.each([
    'javascript:alert(1)',
    'ftp://a.test/',
    'data:text/html,x',
    'file:///etc/passwd',
    '//a.test/x',
    'a.test/x',
    'not a url',
    '',
    'http://',
    'https://a..test/',
    `https://a.test/${'x'.repeat(8_200)}`,
  ])('S-81 drops %j', (url) => {
    expect(admitted(['https://before.test/', url, 'http://after.test/'])).toEqual([
      'https://before.test/',
      'http://after.test/',
    ])
  })

  test('S-81 spells a URL with blanks in it out, since it must stay on its own line', () => {
    expect(showHit(hit('https://a.test/x\n[9] y'), '').url).toBe('https://a.test/x[9]%20y')
    expect(showHit(hit('https://a.test/x?b=1&a=%20#f'), '').url).toBe('https://a.test/x?b=1&a=%20#f')
  })

  test('BR-080 W-34 keeps example.com and what is under it, except ads.example.com', () => {
    const policy = { allowedDomains: ['example.com'], blockedDomains: ['ads.example.com'] }
    const urls = [
      'https://example.com/',
      'https://www.example.com/',
      'https://EXAMPLE.COM./',
      'https://ads.example.com/',
      'https://deep.ads.example.com/',
      'https://badads.example.com/',
      'https://notexample.com/',
      'https://example.com.evil.test/',
      'https://example.com:8443/',
      'https://user@example.com/',
      'https://example.com@evil.test/',
      'https://evil.test/?u=example.com',
      'https://evil.test\\@example.com/',
    ]
    expect(admitted(urls, policy)).toEqual([
      'https://example.com/',
      'https://www.example.com/',
      'https://EXAMPLE.COM./',
      'https://badads.example.com/',
      'https://example.com:8443/',
      'https://user@example.com/',
    ])
  })

  test.each([
    ['an international name and its ASCII form', 'bücher.example', 'https://xn--bcher-kva.example/', true],
    ['the same, the other way round', 'xn--bcher-kva.example', 'https://BÜCHER.example/x', true],
    ['an address only for itself', '93.184.216.34', 'http://93.184.216.34/', true],
    ['an address in another spelling', '93.184.216.34', 'http://0x5db8d822/', true],
    ['not for what ends alike', '184.216.34', 'http://93.184.216.34/', false],
    ['a trailing dot in the list', 'example.com.', 'https://www.example.com/', true],
    ['capitals in the list', 'Example.COM', 'https://www.example.com/', true],
    ['what is no bare host covers nothing', 'https://example.com/path', 'https://example.com/path', false],
    ['no wildcards', '*.example.com', 'https://www.example.com/', false],
  ])('W-34 an entry stands for %s', (_name, entry, url, expected) => {
    expect(admitted([url], { allowedDomains: [entry] })).toHaveLength(expected ? 1 : 0)
    expect(admitted([url], { blockedDomains: [entry] })).toHaveLength(expected ? 0 : 1)
  })

  test('an empty allow-list lets nothing through, none at all everything', () => {
    expect(admitted(['https://a.test/'], { allowedDomains: [] })).toEqual([])
    expect(admitted(['https://a.test/'], { allowedDomains: null })).toHaveLength(1)
  })

  test('SP-22 keeps order and repetitions, and S-49 lets the next hit take a dropped one’s place', () => {
    const urls = ['https://b.test/', 'https://a.test/', 'javascript:x', 'https://b.test/', 'https://c.test/']
    const found = urls.map((url) => hit(url))
    expect(admit(found, everywhere, 4).map(({ url }) => url)).toEqual([
      'https://b.test/',
      'https://a.test/',
      'https://b.test/',
      'https://c.test/',
    ])
    expect(admit(found, everywhere, 2)).toHaveLength(2)
  })
})
