import {
  type ExaContentsFake,
  type FakePage,
  fakeDeepseekFetch,
  fakeExaContents,
  fakeTabstack,
  type SearchFake,
} from '@tollgate/testing'
import type { ToolEntry } from '../src/index.ts'
import { CANARY_KEY, kept } from './engines.ts'

/** A running fake of a fetch provider, and the instance that asks it. */
export interface Fetcher {
  tool: ToolEntry
  fake: SearchFake<FakePage>
}

export type FetcherId = 'deepseek' | 'exa' | 'tabstack'
export const fetcherIds: FetcherId[] = ['deepseek', 'exa', 'tabstack']

export async function openFetcher(id: FetcherId): Promise<Fetcher> {
  switch (id) {
    case 'deepseek': {
      const fake = await kept(fakeDeepseekFetch({ apiKey: CANARY_KEY }))
      return { tool: { provider: id, apiKey: CANARY_KEY, apiBase: fake.url }, fake }
    }
    case 'exa':
      return openExaContents()
    case 'tabstack': {
      const fake = await kept(fakeTabstack({ apiKey: CANARY_KEY }))
      return { tool: { provider: id, apiKey: CANARY_KEY, apiBase: `${fake.url}/v1` }, fake }
    }
    default:
      return id satisfies never
  }
}

export async function openExaContents(): Promise<Fetcher & { fake: ExaContentsFake }> {
  const fake = await kept(fakeExaContents({ apiKey: CANARY_KEY }))
  return { tool: { provider: 'exa', apiKey: CANARY_KEY, apiBase: fake.url }, fake }
}
