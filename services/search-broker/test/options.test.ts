import { checkSearchOptions, type SearchOption } from '@tollgate/contracts'
import { fakeExa, fakeTavily } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { providers } from '../src/providers/catalogue.ts'
import { CANARY_KEY, kept, last } from './engines.ts'
import { openWorld } from './world.ts'

const apiKey = CANARY_KEY

const known: SearchOption[] = [
  { name: 'depth', type: 'string', enum: ['basic', 'Advanced'], description: '' },
  { name: 'country', type: 'string', pattern: '[a-z]{2}', description: '' },
  { name: 'free', type: 'string', description: '' },
  { name: 'level', type: 'integer', minimum: 0, maximum: 2, description: '' },
  { name: 'flag', type: 'boolean', description: '' },
]

describe('S-35 an option is taken or not', () => {
  test.each([
    [{ depth: 'basic' }, { depth: 'basic' }],
    [{ depth: 'ADVANCED' }, { depth: 'Advanced' }],
    [{ country: 'de' }, { country: 'de' }],
    [{ free: 'x'.repeat(200) }, { free: 'x'.repeat(200) }],
    [{ level: 0 }, { level: 0 }],
    [{ level: 2 }, { level: 2 }],
    [{ flag: false }, { flag: false }],
    [{}, {}],
  ])('%j is', (given, accepted) => {
    expect(checkSearchOptions(known, given)).toEqual({ accepted, problems: [] })
  })

  test.each([
    [{ unknown: 1 }, 'is not an option of this provider'],
    [{ constructor: 'x' }, 'is not an option of this provider'],
    [JSON.parse('{"__proto__":{"depth":"basic"}}'), 'is not an option of this provider'],
    [{ depth: 'deep' }, 'must be one of basic, Advanced'],
    [{ depth: '' }, 'must be a text of 1 to 200 characters'],
    [{ depth: ['basic'] }, 'must be a text'],
    [{ depth: null }, 'must be a text'],
    [{ country: 'deu' }, 'must match [a-z]{2}'],
    [{ country: 'de\n' }, 'must match'],
    [{ country: 'xdex' }, 'must match'],
    [{ free: 'x'.repeat(201) }, 'must be a text of 1 to 200 characters'],
    [{ level: -1 }, 'must be a whole number from 0 to 2'],
    [{ level: 3 }, 'must be a whole number from 0 to 2'],
    [{ level: 1.5 }, 'must be a whole number'],
    [{ level: '1' }, 'must be a whole number'],
    [{ flag: 'true' }, 'must be true or false'],
    [{ flag: 1 }, 'must be true or false'],
  ])('%j is not, and the words do not repeat its value', (given, why) => {
    const { accepted, problems } = checkSearchOptions(known, given)
    expect(accepted).toEqual({})
    expect(problems).toEqual([{ name: Object.keys(given)[0], why: expect.stringContaining(why) }])
  })

  test('good ones stay when others are bad', () => {
    const { accepted, problems } = checkSearchOptions(known, { flag: true, bogus: 1, level: 9 })
    expect(accepted).toEqual({ flag: true })
    expect(problems.map(({ name }) => name)).toEqual(['bogus', 'level'])
  })

  test('every provider’s presets are values it would take', () => {
    for (const { id, options } of providers) {
      const presets = Object.fromEntries(options.flatMap((o) => (o.default === undefined ? [] : [[o.name, o.default]])))
      expect([id, checkSearchOptions(options, presets).problems]).toEqual([id, []])
    }
  })
})

describe('S-36 layers', () => {
  test.each([
    ['the provider’s preset', {}, {}, 'auto'],
    ['the instance over it', { type: 'fast' }, {}, 'fast'],
    ['the request over the instance', { type: 'fast' }, { type: 'neural' }, 'neural'],
    ['the request over the preset', {}, { type: 'neural' }, 'neural'],
  ])('%s', async (_name, configured, requested, sent) => {
    const fake = await kept(fakeExa({ apiKey }))
    const settings = { searchTools: { exa: { apiKey, apiBase: fake.url, options: configured } } }
    const { query } = await openWorld({ settings })
    await query({ options: requested })
    expect(last(fake).body).toMatchObject({ type: sent })
  })

  test('layers add up member by member', async () => {
    const fake = await kept(fakeTavily({ apiKey }))
    const settings = { searchTools: { tavily: { apiKey, apiBase: fake.url, options: { topic: 'news' } } } }
    const { query } = await openWorld({ settings })
    await query({ options: { time_range: 'day' } })
    expect(last(fake).body).toMatchObject({ search_depth: 'basic', topic: 'news', time_range: 'day' })
  })
})

test('S-35 what still arrives and does not fit is left out with a warning, and what the operator set stays', async () => {
  const fake = await kept(fakeTavily({ apiKey }))
  const settings = { searchTools: { tavily: { apiKey, apiBase: fake.url, options: { topic: 'news' } } } }
  const { query, log } = await openWorld({ settings })
  const reply = await query({
    options: { topic: 'no such topic', query: 'evil', max_results: 1_000, api_key: 'x', time_range: 'week' },
  })
  expect(reply).toMatchObject({ status: 'ok' })
  expect(last(fake).body).toMatchObject({ query: 'tollgate', max_results: 5, topic: 'news', time_range: 'week' })
  expect(last(fake).body).not.toHaveProperty('api_key')
  expect(log).toEqual([expect.stringMatching(/"provider":"tavily","problems":4/)])
})
