import {
  fakeBrave,
  fakeDeepseekSearch,
  fakeExa,
  fakeMojeek,
  fakeSearxng,
  fakeTavily,
  type SearchFake,
  type SearchFault,
  type SearchRequestSeen,
} from '@tollgate/testing'
import { onTestFinished } from 'vitest'
import type { SearchToolSettings } from '../src/index.ts'

/** Must be found nowhere outside the request to the provider. */
export const CANARY_KEY = 'sk-canary-4c1d9e7f'

/** A running fake of a provider, with what the tests of all providers need to know about it. */
export interface Engine {
  tool: SearchToolSettings
  fake: {
    requests: SearchRequestSeen[]
    refusals: string[]
    inFlight: number
    mostInFlight: number
    abandoned: number
    suffers(...faults: SearchFault[]): void
    alwaysSuffers(fault?: SearchFault): void
  }
  /** Makes it find hits with these URLs, each with a snippet; with page text too where the provider has any. */
  finds(urls: string[]): void
  /** What the provider was asked for, in its own words. */
  asked(): { query: unknown; count: unknown }
}

type Id = 'brave' | 'deepseek' | 'exa' | 'mojeek' | 'searxng' | 'tavily'
export const engineIds: Id[] = ['brave', 'deepseek', 'exa', 'mojeek', 'searxng', 'tavily']

export async function openEngine(id: Id): Promise<Engine> {
  switch (id) {
    case 'brave': {
      const fake = await kept(fakeBrave({ apiKey: CANARY_KEY }))
      return {
        tool: { provider: id, apiKey: CANARY_KEY, apiBase: fake.url },
        fake,
        finds: (urls) =>
          fake.finds(urls.map((url) => ({ url, title: `Title of ${url}`, description: `about ${url}` }))),
        asked: () => ({ query: last(fake).query.q, count: Number(last(fake).query.count) }),
      }
    }
    case 'deepseek': {
      const fake = await kept(fakeDeepseekSearch({ apiKey: CANARY_KEY }))
      return {
        tool: { provider: id, apiKey: CANARY_KEY, apiBase: fake.url },
        fake,
        finds: (urls) => fake.finds(urls.map((url) => ({ url, title: `Title of ${url}`, snippet: `about ${url}` }))),
        asked: () => ({ query: member(last(fake).body, 'query'), count: member(last(fake).body, 'count') }),
      }
    }
    case 'mojeek': {
      const fake = await kept(fakeMojeek({ apiKey: CANARY_KEY }))
      return {
        tool: { provider: id, apiKey: CANARY_KEY, apiBase: fake.url },
        fake,
        finds: (urls) => fake.finds(urls.map((url) => ({ url, title: `Title of ${url}`, desc: `about ${url}` }))),
        asked: () => ({ query: last(fake).query.q, count: Number(last(fake).query.t) }),
      }
    }
    case 'exa': {
      const fake = await kept(fakeExa({ apiKey: CANARY_KEY }))
      return {
        tool: { provider: id, apiKey: CANARY_KEY, apiBase: fake.url },
        fake,
        finds: (urls) => fake.finds(urls.map((url) => ({ url, title: `Title of ${url}`, text: `about ${url}` }))),
        asked: () => ({ query: member(last(fake).body, 'query'), count: member(last(fake).body, 'numResults') }),
      }
    }
    case 'searxng': {
      const fake = await kept(fakeSearxng())
      return {
        tool: { provider: id, apiBase: fake.url },
        fake,
        finds: (urls) => fake.finds(urls.map((url) => ({ url, title: `Title of ${url}`, content: `about ${url}` }))),
        asked: () => ({ query: last(fake).query.q, count: undefined }),
      }
    }
    case 'tavily': {
      const fake = await kept(fakeTavily({ apiKey: CANARY_KEY }))
      return {
        tool: { provider: id, apiKey: CANARY_KEY, apiBase: fake.url },
        fake,
        finds: (urls) =>
          fake.finds(
            urls.map((url) => ({
              url,
              title: `Title of ${url}`,
              content: `about ${url}`,
              raw_content: `about ${url}`,
            })),
          ),
        asked: () => ({ query: member(last(fake).body, 'query'), count: member(last(fake).body, 'max_results') }),
      }
    }
    default:
      return id satisfies never
  }
}

/** Closed when the test ends. */
export async function kept<T extends { close(): Promise<void> }>(opening: Promise<T>): Promise<T> {
  const opened = await opening
  onTestFinished(() => opened.close())
  return opened
}

export function last(fake: Pick<SearchFake<unknown>, 'requests'>): SearchRequestSeen {
  const request = fake.requests.at(-1)
  if (!request) throw new Error('the provider was not asked')
  return request
}

const member = (body: unknown, name: string): unknown =>
  typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined
