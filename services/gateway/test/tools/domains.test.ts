import { expect, test } from 'vitest'
import { displayUrl } from '../../src/tools/display-url.ts'
import { narrowDomains } from '../../src/tools/domains.ts'

const only = (...allowedDomains: string[]) => ({ allowedDomains, blockedDomains: [] })
const all = { allowedDomains: null, blockedDomains: [] }

test.each([
  [only('example.com'), only('docs.example.com'), ['docs.example.com']],
  [only('docs.example.com'), only('example.com'), ['docs.example.com']],
  [only('a.test', 'b.test'), only('b.test', 'c.test'), ['b.test']],
  [all, only('a.test'), ['a.test']],
  [only('a.test'), all, ['a.test']],
  [all, all, null],
])('W-35 of allow lists %j and %j the narrower entries stay', (one, other, expected) => {
  expect(narrowDomains(one, other).allowedDomains).toEqual(expected)
})

test.each([
  [only('example.com'), only('notexample.com')],
  [only('10.0.0.1'), only('0.0.1')],
])('W-35 refuses allow lists %j and %j, which have nothing in common', (one, other) => {
  expect(() => narrowDomains(one, other)).toThrow('The requested search domains are not permitted for this workspace')
})

test('W-35 block lists add up', () => {
  const blocked = (...blockedDomains: string[]) => ({ allowedDomains: null, blockedDomains })
  expect(narrowDomains(blocked('a.test', 'b.test'), blocked('b.test', 'c.test'))).toEqual({
    allowedDomains: null,
    blockedDomains: ['a.test', 'b.test', 'c.test'],
  })
})

test.each([
  ['https://u:p@a.test:8443/x?token=1#y', 'https://a.test:8443/x'],
  ['HTTP://A.Test', 'http://a.test/'],
  ['ftp://a.test/x', null],
  ['javascript:alert(1)', null],
  ['not a url', null],
  [undefined, null],
  [7, null],
])('F-33 shows %j as %j', (url, shown) => {
  expect(displayUrl(url)).toBe(shown)
})
