import {
  fakeBrave,
  fakeDeepseekFetch,
  fakeExa,
  fakeExaContents,
  fakeSearxng,
  fakeTabstack,
  fakeTavily,
} from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { kept } from './engines.ts'

const apiKey = 'k'
const json = (headers: Record<string, string>, body: unknown) => ({
  method: 'POST',
  headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})
const get = (headers: Record<string, string> = {}) => ({ headers: { accept: 'application/json', ...headers } })

/** The tests of the broker are worth what the fakes refuse: each takes one good request and none of its neighbours. */
describe('a fake refuses what its vendor refuses', () => {
  test.each<[string, string, RequestInit, number]>([
    ['a good request', '/search?q=x&format=json', get(), 200],
    ['no query', '/search?format=json', get(), 400],
    ['an empty query', '/search?q=&format=json', get(), 400],
    ['no format', '/search?q=x', get(), 400],
    ['HTML', '/search?q=x&format=html', get(), 400],
    ['the query twice', '/search?q=x&q=y&format=json', get(), 400],
    ['an unknown time range', '/search?q=x&format=json&time_range=hour', get(), 400],
    ['too safe a search', '/search?q=x&format=json&safesearch=3', get(), 400],
    ['an unknown parameter', '/search?q=x&format=json&key=1', get(), 400],
    ['another path', '/?q=x&format=json', get(), 404],
    ['a trace of ours', '/search?q=x&format=json', get({ traceparent: '00-1-1-01' }), 400],
    ['any other Accept', '/search?q=x&format=json', { headers: { accept: '*/*' } }, 406],
  ])('SearXNG: %s', async (_name, path, init, status) => {
    const fake = await kept(fakeSearxng())
    expect((await fetch(fake.url + path, init)).status).toBe(status)
    expect(fake.refusals).toHaveLength(status === 200 ? 0 : 1)
    expect(fake.requests).toHaveLength(1)
  })

  const bearer = { authorization: `Bearer ${apiKey}` }
  test.each<[string, RequestInit, number]>([
    ['a good request', json(bearer, { query: 'x', max_results: 20 }), 200],
    ['no key', json({}, { query: 'x' }), 401],
    ['another key', json({ authorization: 'Bearer other' }, { query: 'x' }), 401],
    ['the key in the body', json({}, { query: 'x', api_key: apiKey }), 401],
    ['no query', json(bearer, {}), 400],
    ['a query of 401 characters', json(bearer, { query: 'x'.repeat(401) }), 400],
    ['21 results', json(bearer, { query: 'x', max_results: 21 }), 400],
    ['half a result', json(bearer, { query: 'x', max_results: 1.5 }), 400],
    ['results as a text', json(bearer, { query: 'x', max_results: '5' }), 400],
    ['an unknown depth', json(bearer, { query: 'x', search_depth: 'deep' }), 400],
    ['an unknown member', json(bearer, { query: 'x', q: 'x' }), 400],
    ['no JSON type', json({ ...bearer, 'content-type': 'text/plain' }, { query: 'x' }), 415],
    ['GET', get(bearer), 404],
  ])('Tavily: %s', async (_name, init, status) => {
    const fake = await kept(fakeTavily({ apiKey }))
    const response = await fetch(`${fake.url}/search`, init)
    expect(response.status).toBe(status)
    if (status !== 200) expect(await response.json()).toEqual({ detail: { error: fake.refusals[0] } })
  })

  const token = { 'x-subscription-token': apiKey }
  test.each<[string, string, Record<string, string>, number]>([
    ['a good request', 'q=x&count=20&freshness=pd&country=US', token, 200],
    ['no token', 'q=x', {}, 422],
    ['another token', 'q=x', { 'x-subscription-token': 'other' }, 422],
    ['a bearer key', 'q=x', { authorization: `Bearer ${apiKey}` }, 422],
    ['no query', 'count=5', token, 422],
    ['51 words', `q=${'a+'.repeat(51)}`, token, 422],
    ['401 characters', `q=${'a'.repeat(401)}`, token, 422],
    ['21 results', 'q=x&count=21', token, 422],
    ['no results', 'q=x&count=0', token, 422],
    ['an age in letters of ours', 'q=x&freshness=d', token, 422],
    ['an unknown country', 'q=x&country=LU', token, 422],
    ['a country in small letters', 'q=x&country=us', token, 422],
    ['an unknown parameter', 'q=x&limit=5', token, 422],
  ])('Brave: %s', async (_name, query, headers, status) => {
    const fake = await kept(fakeBrave({ apiKey }))
    const response = await fetch(`${fake.url}/res/v1/web/search?${query}`, get(headers))
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ type: status === 200 ? 'search' : 'ErrorResponse' })
  })

  const key = { 'x-api-key': apiKey }
  test.each<[string, RequestInit, number]>([
    ['a good request', json(key, { query: 'x', numResults: 100, contents: { text: { maxCharacters: 10 } } }), 200],
    ['no key', json({}, { query: 'x' }), 401],
    ['another key', json({ 'x-api-key': 'other' }, { query: 'x' }), 401],
    ['no query', json(key, {}), 400],
    ['101 results', json(key, { query: 'x', numResults: 101 }), 400],
    ['no results', json(key, { query: 'x', numResults: 0 }), 400],
    ['an unknown type', json(key, { query: 'x', type: 'best' }), 400],
    ['an unknown category', json(key, { query: 'x', category: 'blog' }), 400],
    ['a date in words', json(key, { query: 'x', startPublishedDate: 'last week' }), 400],
    ['excluded domains for companies', json(key, { query: 'x', category: 'company', excludeDomains: ['a.test'] }), 400],
    ['text beside contents', json(key, { query: 'x', text: true }), 400],
    ['names of ours', json(key, { query: 'x', max_results: 5 }), 400],
  ])('Exa: %s', async (_name, init, status) => {
    const fake = await kept(fakeExa({ apiKey }))
    expect((await fetch(`${fake.url}/search`, init)).status).toBe(status)
    expect(fake.refusals).toHaveLength(status === 200 ? 0 : 1)
  })

  const pages = [{ url: 'https://a.test/', text: 'a' }]
  test.each<[string, RequestInit, number]>([
    ['a good request', json(key, { urls: ['https://a.test/'], text: { maxCharacters: 10 }, maxAgeHours: 0 }), 200],
    ['another key', json({ 'x-api-key': 'other' }, { urls: ['https://a.test/'], text: true }), 401],
    ['no URL', json(key, { urls: [], text: true }), 400],
    ['one URL for many', json(key, { url: 'https://a.test/', text: true }), 400],
    ['what is no URL', json(key, { urls: ['a.test'], text: true }), 400],
    ['contents, as a search has them', json(key, { urls: ['https://a.test/'], contents: { text: true } }), 400],
    ['no text at all', json(key, { urls: ['https://a.test/'], text: { maxCharacters: 0 } }), 400],
    ['too old a copy', json(key, { urls: ['https://a.test/'], text: true, maxAgeHours: 721 }), 400],
  ])('Exa’s contents: %s', async (_name, init, status) => {
    const fake = await kept(fakeExaContents({ apiKey }))
    fake.finds(pages)
    expect((await fetch(`${fake.url}/contents`, init)).status).toBe(status)
    expect(fake.refusals).toHaveLength(status === 200 ? 0 : 1)
  })

  test.each<[string, RequestInit, number]>([
    ['a good request', json(bearer, { url: 'https://a.test/' }), 200],
    ['no key', json({}, { url: 'https://a.test/' }), 401],
    ['Exa’s header', json(key, { url: 'https://a.test/' }), 401],
    ['no URL', json(bearer, {}), 400],
    ['another scheme', json(bearer, { url: 'ftp://a.test/' }), 400],
    ['a user in the URL', json(bearer, { url: 'https://u@a.test/' }), 400],
    ['a length', json(bearer, { url: 'https://a.test/', max_characters: 10 }), 400],
    ['a page that is not there', json(bearer, { url: 'https://b.test/' }), 404],
  ])('DeepSeek: %s', async (_name, init, status) => {
    const fake = await kept(fakeDeepseekFetch({ apiKey }))
    fake.finds(pages)
    expect((await fetch(`${fake.url}/v1/tools/fetch`, init)).status).toBe(status)
  })

  test.each<[string, RequestInit, number]>([
    ['a good request', json(bearer, { url: 'https://a.test/', metadata: true, effort: 'max', content: 'full' }), 200],
    ['no key', json({}, { url: 'https://a.test/' }), 401],
    ['no URL', json(bearer, { metadata: true }), 400],
    ['an unknown effort', json(bearer, { url: 'https://a.test/', effort: 'MAX' }), 400],
    ['a length', json(bearer, { url: 'https://a.test/', maxCharacters: 10 }), 400],
    ['a page that is not there', json(bearer, { url: 'https://b.test/' }), 422],
  ])('Tabstack: %s', async (_name, init, status) => {
    const fake = await kept(fakeTabstack({ apiKey }))
    fake.finds(pages)
    expect((await fetch(`${fake.url}/v1/extract/markdown`, init)).status).toBe(status)
  })
})
