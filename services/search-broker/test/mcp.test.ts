import { searchMcp } from '@tollgate/contracts'
import { fakeSerper } from '@tollgate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startSearchBroker } from '../src/index.ts'
import { scrub } from '../src/mcp/scrub.ts'
import { PROVIDER_TIMEOUT_MS } from '../src/mcp/search.ts'
import { openWorld, recordingLog, tenancy } from './world.ts'

const key = 'tvly-a/b+c=="x"\\y'
const origin = 'https://api.vendor.test'
const url = `${origin}/search?q=a+b&count=5`
const json = (value: unknown, times: number): string =>
  times === 0 ? String(value) : JSON.stringify(json(value, times - 1))
const percent = (text: string, times: number): string =>
  times === 0 ? text : encodeURIComponent(percent(text, times - 1))

describe('WM-64 a provider’s words', () => {
  const spellings: [string, (text: string) => string][] = [
    ['as they are', (text) => text],
    ['as JSON', (text) => json(text, 1)],
    ['as JSON in JSON in JSON', (text) => json(text, 3)],
    ['with escaped slashes', (text) => text.replaceAll('/', '\\/')],
    ['URL-encoded', (text) => percent(text, 1)],
    ['URL-encoded twice', (text) => percent(text, 2)],
    ['URL-encoded in lower case', (text) => percent(text, 1).replace(/%../g, (code) => code.toLowerCase())],
    [
      'as unicode escapes',
      (text) => Array.from(text, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
    ],
    ['as HTML', (text) => Array.from(text, (c) => (/\W/.test(c) ? `&#${c.charCodeAt(0)};` : c)).join('')],
  ]

  test.each(spellings)('WM-64 hold neither URL nor key, %s', (_how, spell) => {
    const text = `{"error":"no ${spell(url)} for ${spell(key)} today"}`
    const scrubbed = scrub(text, { origin, key })
    expect(scrubbed).toMatch(/<url>.* for .*<redacted>.* today/)
    expect(scrubbed).not.toMatch(/vendor|tvly|count/)
  })

  test('WM-64 say the rest', () => {
    expect(scrub(`see ${url}, then https://other.test/x`, { origin, key })).toBe('see <url> then https://other.test/x')
    expect(scrub(`(${url})`, { origin, key })).toMatch(/^\(<url>/)
  })

  test('WM-64 are gone through in a moment, however they are made', () => {
    for (const text of ['\\'.repeat(65_536), `${origin.slice(0, -1)} `.repeat(2_700), '%25'.repeat(21_000)]) {
      const began = process.cpuUsage()
      scrub(text, { origin, key })
      expect(process.cpuUsage(began).user).toBeLessThan(2_000_000)
    }
  })
})

test('WM-63 a provider has 30 seconds', () => {
  expect(PROVIDER_TIMEOUT_MS).toBe(30_000)
})

test('WM-63 WM-64 a hanging provider ends in time, and an error too long to be scrubbed is not shown', async () => {
  const serper = await fakeSerper({ apiKey: 'k' })
  onTestFinished(() => serper.close())
  const mcp = { provider: 'serper', apiKey: 'k', apiBase: serper.url, timeoutMs: 200 }
  const { bus } = await openWorld({ settings: { mcp } })
  const search = () =>
    bus.call(
      searchMcp,
      { tenancy, query: 'x', numResults: 5, searchType: 'general', searchDepth: 'basic' },
      { deadline: Date.now() + 20_000 },
    )
  serper.suffers({ kind: 'hang' }, { kind: 'status', status: 500, body: 'k'.repeat(70_000) })
  expect(await search()).toMatchObject({ status: 'failed', message: 'serper did not answer in time' })
  expect(await search()).toMatchObject({ status: 'failed', message: 'serper answered with status 500' })
  serper.suffers({ kind: 'body', body: '<html>' }, { kind: 'reset' })
  expect(await search()).toMatchObject({ message: 'serper answered with something that is no search result' })
  expect(await search()).toMatchObject({ message: 'serper could not be reached' })
})

test('a base that would carry the key in the clear stops the start', async () => {
  const { bus } = await openWorld()
  const settings = {
    searchTools: {},
    legacy: {},
    mcp: { provider: 'serper', apiKey: 'k', apiBase: 'http://serper.test' },
  }
  await expect(startSearchBroker({ bus, log: recordingLog().log, settings })).rejects.toThrow(
    /^mcp_web_search_api_base /,
  )
})
