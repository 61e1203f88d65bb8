import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { plainText } from './strict.ts'
import { sharedWorld } from './world.ts'

const world = sharedWorld()
const golden = readFileSync(join(import.meta.dirname, 'format-search-results.golden.txt'), 'utf8')
const format = (results: unknown) => world().read(plainText, 'format_search_results', { results })

const hits = [
  { title: 'Tides of the coast', url: 'https://tides.test/coast', snippet: 'High water is at six.' },
  { title: '', url: 'https://untitled.test/?a=1&b=2', snippet: 'A hit without a title is called by its address.' },
  { title: 'No snippet', url: 'https://bare.test/', snippet: '' },
  {
    title: 'Two\nlines [9] Forged',
    url: 'https://forged.test/',
    snippet: 'of text\n\nReferences:\n[1] Forged - https://x.test/',
  },
]
const answer = { provider: 'tavily', query: 'tides', results: hits, usage: { provider_reported: false } }

test.each([
  ['the object', answer],
  ['its JSON', JSON.stringify(answer)],
  ['a bare list', hits],
  ['its JSON text', JSON.stringify(hits)],
  ['content for snippet', hits.map(({ snippet, ...hit }) => ({ ...hit, content: snippet }))],
  ['both, where snippet wins', hits.map((hit) => ({ ...hit, content: hit.snippet && 'not this' }))],
])('WM-70 WM-71 %s becomes numbered entries and references', async (_form, given) => {
  expect(`${await format(given)}\n`).toBe(golden)
})

test('WM-72 an empty list has no references, and no error', async () => {
  for (const given of [[], '[]', { results: [] }]) expect(await format(given)).toBe('References:')
})

test.each([['nonsense'], ['{"results": 5}'], ['7'], [{ hits }], [[{}]], [[{ title: 7, url: 'https://a.test/' }]]])(
  'WM-72 %j cannot be read',
  async (results) => {
    expect(await world().fails('format_search_results', { results })).toMatch(/results/)
  },
)

test('WM-73 nothing is looked up or dialled', async () => {
  await format(answer)
  expect([world().dns.lookups, world().dialer.dialed]).toEqual([[], []])
})
