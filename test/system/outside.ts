import {
  type FakeModel,
  fakeAnthropic,
  fakeOpenAi,
  fakeSearxng,
  type SearchFake,
  type SearxngResult,
} from '@tollgate/testing'
import { type JobModel, type JobOptions, jobModel } from './scripted-jobs.ts'
import { openWeb, type Web } from './web.ts'

/** Keys that must turn up nowhere but at the vendor they are for. */
export const canaries = { openai: 'sk-canary-openai-key', anthropic: 'sk-canary-anthropic-key' }

/** Everything that is not ours: model providers, a search engine, and the web. */
export interface Outside {
  jobs: JobModel
  openai: FakeModel
  anthropic: FakeModel
  search: SearchFake<SearxngResult>
  web: Web
  /** Config members and environment that name all of it. */
  config: Record<string, unknown>
  env: Record<string, string>
  close(): Promise<void>
}

/** What the engine finds, whatever it is asked: a page that is yet to be read. */
export const hit = { url: 'http://93.184.216.34/hit', title: 'What the engine found', content: 'a snippet' }

export async function openOutside(options: JobOptions = {}): Promise<Outside> {
  const jobs = jobModel(options)
  const [openai, anthropic, search, web] = await Promise.all([
    fakeOpenAi((body) => jobs.reply(body, 'chat'), { apiKey: canaries.openai }),
    fakeAnthropic((body) => jobs.reply(body, 'messages'), { apiKey: canaries.anthropic }),
    fakeSearxng(),
    openWeb(),
  ])
  search.finds([hit])
  return {
    jobs,
    openai,
    anthropic,
    search,
    web,
    config: {
      providers: {
        openai: { api_key: canaries.openai, api_base: `${openai.url}/v1` },
        anthropic: { api_key: canaries.anthropic, api_base: anthropic.url },
      },
      search_tools: { engine: { provider: 'searxng', api_base: search.url, price_per_call: '0.005' } },
    },
    env: {
      OTARI_WEB_FETCH_ENABLED: 'true',
      // the guard lets nothing through to this machine, so pages are asked of a proxy, as an operator may have one
      OTARI_WEB_RETRIEVAL_TRUST_ENV_PROXY: 'true',
      HTTP_PROXY: proxyUrl(web),
    },
    close: async () => {
      await Promise.all([openai.close(), anthropic.close(), search.close(), web.close()])
    },
  }
}

export const proxyUrl = ({ port }: Web): string => `http://127.0.0.1:${port}`
