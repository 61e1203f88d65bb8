import { expect, test } from 'vitest'
import { jsonRows } from '../src/json-rows.ts'

test('rows lose what Postgres cannot store, in values and in names, and nothing else', () => {
  const odd = { a: 'x\0y', nested: [{ 'n\0': '\ud800', kept: '😀 \\u0000 "' }], n: 1, flag: true, nil: null }
  expect(JSON.parse(jsonRows([odd]))).toEqual([
    { a: 'xy', nested: [{ n: '\ufffd', kept: '😀 \\u0000 "' }], n: 1, flag: true, nil: null },
  ])
})

test('ordinary rows stay as they are', () => {
  const rows = [{ a: 'é\n\t"', b: [1, 2], c: { d: null } }]
  expect(jsonRows(rows)).toBe(JSON.stringify(rows))
})
