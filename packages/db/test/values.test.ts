import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kinds, type Opened, open } from './databases.ts'

const read: [string, string, unknown][] = [
  ['int8', `9007199254740993::int8`, 9007199254740993n],
  ['a small int8', `1::int8`, 1n],
  ['a negative int8', `(-7)::int8`, -7n],
  ['int4', `7::int4`, 7],
  ['numeric', `1.10::numeric`, '1.10'],
  ['count', `(select count(*) from generate_series(1, 3))`, 3n],
  ['a sum of int4', `(select sum(n) from generate_series(1, 3) as g(n))`, 6n],
  ['a sum of int8', `(select sum(n) from generate_series(1, 3::int8) as g(n))`, '6'],
  ['float8', `0.5::float8`, 0.5],
  ['bool', `true`, true],
  ['text', `'a"b\\c'`, 'a"b\\c'],
  ['uuid', `'0b6f7c1e-0000-4000-8000-000000000001'::uuid`, '0b6f7c1e-0000-4000-8000-000000000001'],
  ['bytea', `'\\x00ff10'::bytea`, Buffer.from([0, 255, 16])],
  ['empty bytea', `''::bytea`, Buffer.alloc(0)],
  ['timestamptz', `'2026-02-28 23:30:00.25+05:30'::timestamptz`, new Date('2026-02-28T18:00:00.250Z')],
  ['date', `'2026-02-28'::date`, '2026-02-28'],
  ['timestamp', `'2026-02-28 23:30:00'::timestamp`, '2026-02-28 23:30:00'],
  ['interval', `'1 day 2 hours'::interval`, '1 day 02:00:00'],
  ['json', `'{"a":[1,null]}'::json`, { a: [1, null] }],
  ['jsonb', `'{"a":"b"}'::jsonb`, { a: 'b' }],
  ['a json null', `'null'::jsonb`, null],
  ['null', `null::int8`, null],
  ['text[]', `array['a,b', 'c"d', '', 'NULL', null, 'e\\f']`, ['a,b', 'c"d', '', 'NULL', null, 'e\\f']],
  ['an empty text[]', `'{}'::text[]`, []],
  ['int8[]', `array[1, 9007199254740993]::int8[]`, [1n, 9007199254740993n]],
  [
    'nested int4[]',
    `array[[1, 2], [3, 4]]`,
    [
      [1, 2],
      [3, 4],
    ],
  ],
  ['an int4[] with another lower bound', `'[2:3]={5,6}'::int4[]`, [5, 6]],
  ['numeric[]', `array[1.50::numeric]`, ['1.50']],
  ['jsonb[]', `array['{"a":1}'::jsonb]`, [{ a: 1 }]],
  ['timestamptz[]', `array['2026-01-01 00:00:00+00'::timestamptz]`, [new Date('2026-01-01T00:00:00Z')]],
]

const sent: [string, string, unknown, unknown][] = [
  ['a bigint', 'int8', 9007199254740993n, 9007199254740993n],
  ['a number', 'int4', 7, 7],
  ['a number into numeric', 'numeric', 1.5, '1.5'],
  ['text', 'text', `it's "x" \\ é €`, `it's "x" \\ é €`],
  ['a Date', 'timestamptz', new Date('2026-01-01T10:00:00.123Z'), new Date('2026-01-01T10:00:00.123Z')],
  ['bytes', 'bytea', new Uint8Array([0, 92, 255]), Buffer.from([0, 92, 255])],
  ['an object', 'jsonb', { a: [1, 'x'] }, { a: [1, 'x'] }],
  ['a list', 'text[]', ['a,b', 'c"d', 'e\\f', '', null], ['a,b', 'c"d', 'e\\f', '', null]],
  ['an empty list', 'int8[]', [], []],
  [
    'a list of lists',
    'int4[]',
    [
      [1, 2],
      [3, 4],
    ],
    [
      [1, 2],
      [3, 4],
    ],
  ],
  ['a list of Dates', 'timestamptz[]', [new Date(0)], [new Date(0)]],
  ['true', 'bool', true, true],
  ['null', 'int8', null, null],
  ['undefined', 'text', undefined, null],
]

describe.each(kinds)('values of %s', (kind) => {
  let opened: Opened
  beforeAll(async () => {
    opened = await open(kind)
  })
  afterAll(() => opened.close())

  test.each(read)('%s is read the same from both databases', async (_, expression, expected) => {
    const { rows } = await sql<{ value: unknown }>`select ${sql.raw(expression)} as value`.execute(opened.db.kysely)
    expect(rows[0]?.value).toStrictEqual(expected)
  })

  test.each(sent)('%s is sent as its value to both databases', async (_, type, given, expected) => {
    const { rows } = await sql<{ value: unknown }>`select ${given}::${sql.raw(type)} as value`.execute(opened.db.kysely)
    expect(rows[0]?.value).toStrictEqual(expected)
  })
})
