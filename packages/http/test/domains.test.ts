import { describe, expect, test } from 'vitest'
import { domainCovers, hostOf, normaliseHost, permitsHost } from '../src/index.ts'

describe('W-34 domain entries', () => {
  test.each([
    ['example.com', 'example.com', true],
    ['example.com', 'a.example.com', true],
    ['example.com', 'b.a.example.com', true],
    ['example.com', 'notexample.com', false],
    ['example.com', 'example.com.evil.test', false],
    ['a.example.com', 'example.com', false],
    ['Example.COM.', 'a.example.com', true],
    ['bücher.example', 'xn--bcher-kva.example', true],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example', true],
    ['93.184.216.34', '93.184.216.34', true],
    ['184.216.34', '93.184.216.34', false],
    ['2130706433', '127.0.0.1', true],
    ['2606:4700::1111', '2606:4700:0:0:0:0:0:1111', true],
    ['[2606:4700::1111]', '2606:4700::1111', true],
    ['93.184.216.34', '::ffff:93.184.216.34', true],
    ['[::ffff:93.184.216.34]', '93.184.216.34', true],
    ['93.184.216.34', '::93.184.216.34', false],
    ['93.184.216.34', '::ffff:93.184.216.35', false],
    ['com', 'example.com', true],
  ])('%s covers %s: %s', (entry, host, covers) => {
    const canonical = hostOf(new URL(`http://${host.includes(':') ? `[${host}]` : host}/`)) ?? ''
    expect(permitsHost({ allowedDomains: [entry], blockedDomains: [] }, canonical)).toBe(covers)
    expect(permitsHost({ allowedDomains: null, blockedDomains: [entry] }, canonical)).toBe(!covers)
  })

  test.each([
    '',
    ' ',
    '*.example.com',
    'https://example.com',
    'example.com/x',
    'example.com:80',
    'u@example.com',
    'a..b',
    'a b',
  ])('an entry that is no host covers nothing: "%s"', (entry) => {
    expect(normaliseHost(entry)).toBeUndefined()
    expect(permitsHost({ allowedDomains: [entry], blockedDomains: [] }, 'example.com')).toBe(false)
    expect(permitsHost({ allowedDomains: null, blockedDomains: [entry] }, 'example.com')).toBe(true)
  })

  test('a block wins over an allow; no list allows all, an empty one nothing', () => {
    expect(permitsHost({ allowedDomains: ['example.com'], blockedDomains: ['b.example.com'] }, 'b.example.com')).toBe(
      false,
    )
    expect(permitsHost({ allowedDomains: ['example.com'], blockedDomains: ['b.example.com'] }, 'a.example.com')).toBe(
      true,
    )
    expect(permitsHost({ allowedDomains: null, blockedDomains: [] }, 'example.com')).toBe(true)
    expect(permitsHost({ allowedDomains: [], blockedDomains: [] }, 'example.com')).toBe(false)
    expect(domainCovers('example.com', 'xexample.com')).toBe(false)
  })
})
