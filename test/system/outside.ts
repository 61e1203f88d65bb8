import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type FakeModel,
  type FakeSite,
  fakeAnthropic,
  fakeOpenAi,
  fakeSearxng,
  openSite,
  type SearchFake,
  type SearxngResult,
} from '@tollgate/testing'
import { type JobModel, type JobOptions, jobModel } from './scripted-jobs.ts'

/** Keys that must turn up nowhere but at the vendor they are for. */
export const canaries = { openai: 'sk-canary-openai-key', anthropic: 'sk-canary-anthropic-key' }

/** Everything that is not ours: model providers, a search engine, and the web behind an operator's forward proxy. */
export interface Outside {
  jobs: JobModel
  openai: FakeModel
  anthropic: FakeModel
  search: SearchFake<SearxngResult>
  /** The forward proxy: its requests have absolute targets. */
  web: FakeSite
  /** Makes pages come later; a page is never answered while it returns undefined. */
  pageDelayMs: (target: string) => number | undefined
  /** Pages whose reader left before they were whole. */
  leftPages(): number
  /** Config members that name all of it. */
  config: Record<string, unknown>
  env: Record<string, string>
  close(): Promise<void>
}

export const hit = { url: 'http://93.184.216.34/hit', title: 'What the engine found', content: 'a snippet' }

export async function openOutside(options: JobOptions = {}): Promise<Outside> {
  const jobs = jobModel(options)
  const [openai, anthropic, search] = await Promise.all([
    fakeOpenAi((body) => jobs.reply(body, 'chat'), { apiKey: canaries.openai }),
    fakeAnthropic((body) => jobs.reply(body, 'messages'), { apiKey: canaries.anthropic }),
    fakeSearxng(),
  ])
  search.finds([hit])
  let leftPages = 0
  const web = await openSite(
    (request, response) => {
      response.once('close', () => {
        if (!response.writableFinished) leftPages += 1
      })
      servePage(request, response, outside)
    },
    { isProxy: true },
  )
  const outside: Outside = {
    jobs,
    openai,
    anthropic,
    search,
    web,
    pageDelayMs: () => 0,
    leftPages: () => leftPages,
    config: {
      providers: {
        openai: { api_key: canaries.openai, api_base: `${openai.url}/v1` },
        anthropic: { api_key: canaries.anthropic, api_base: anthropic.url },
      },
      search_tools: { engine: { provider: 'searxng', api_base: search.url, price_per_call: '0.005' } },
    },
    env: {
      OTARI_WEB_FETCH_ENABLED: 'true',
      OTARI_WEB_RETRIEVAL_TRUST_ENV_PROXY: 'true',
      HTTP_PROXY: `http://127.0.0.1:${web.port}`,
    },
    close: async () => {
      await Promise.all([openai.close(), anthropic.close(), search.close(), web.close()])
    },
  }
  return outside
}

export const pageText = (tag: string): string => `The page about ${tag} says that its secret word is walnut-${tag}.`

function servePage({ url = '' }: IncomingMessage, response: ServerResponse, { pageDelayMs }: Outside): void {
  const { pathname } = new URL(url)
  const tag = pathname.split('/').at(-1) ?? ''
  const html = `<!doctype html><html><head><title>${tag}</title></head><body><article><h1>${tag}</h1><p>${pageText(tag)}</p></article></body></html>`
  const delayMs = pageDelayMs(url)
  const answer = () => response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html)
  if (delayMs !== undefined) setTimeout(answer, delayMs)
}
