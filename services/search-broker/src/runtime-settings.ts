import type { Bus, Handler } from '@tollgate/bus'
import { BUILTIN_FETCH, type RuntimeSettings, type searchJudgeSettings, searchTry } from '@tollgate/contracts'
import type { TrustedClient } from '@tollgate/http'
import { type AskOptions, askProvider, type ProviderFailure } from './ask.ts'
import type { Backends } from './backends.ts'
import { deploymentOptions } from './options.ts'
import { searxng } from './providers/searxng.ts'
import { LEGACY_ENGINES, LEGACY_TIMEOUT_MS, type SearchSettings } from './settings.ts'

/** What is in force: what operators set while the broker runs lies over what it was started with (CFG-51). */
export const withRuntime = (started: SearchSettings, set: RuntimeSettings): SearchSettings => ({
  ...started,
  webSearchDefaultTool: set.web_search_default_tool ?? started.webSearchDefaultTool,
  webFetchDefaultTool: set.web_fetch_default_tool ?? started.webFetchDefaultTool,
  webSearchMaxResults: set.web_search_max_results ?? started.webSearchMaxResults,
  legacy: {
    ...started.legacy,
    provider: set.web_search_provider ?? started.legacy.provider,
    url: set.web_search_url ?? started.legacy.url,
    engines: set.web_search_engines ?? started.legacy.engines,
    extract: set.web_search_extract ?? started.legacy.extract,
    allowPrivateHosts: set.web_search_allow_private_hosts ?? started.legacy.allowPrivateHosts,
  },
})

/** What would count as unset, were it in force, is refused where it is written (S-32, S-71). */
export const judgeSettings =
  (
    started: SearchSettings,
    backends: () => Pick<Backends, 'instances' | 'fetchers'>,
  ): Handler<typeof searchJudgeSettings> =>
  async (wanted) => {
    const { instances, fetchers } = backends()
    const { web_search_default_tool: search, web_fetch_default_tool: fetch, web_search_provider: provider } = wanted
    const problems: { key: string; why: string }[] = []
    if (search !== undefined && search.toLowerCase() !== 'none' && !instances.find(search))
      problems.push({ key: 'web_search_default_tool', why: naming('search', instances.all().map(nameOf), 'none') })
    if (fetch !== undefined && fetch !== BUILTIN_FETCH && !fetchers.find(fetch))
      problems.push({
        key: 'web_fetch_default_tool',
        why: naming(
          'fetch',
          fetchers.all().map(({ name }) => name),
          BUILTIN_FETCH,
        ),
      })
    if (provider !== undefined && started.legacy.apiKey === undefined)
      problems.push({
        key: 'web_search_provider',
        why: 'counts only with web_search_provider_api_key, which the config file or the environment has to name',
      })
    return { problems }
  }

const nameOf = ({ instance }: { instance: string | null }): string => instance ?? ''
const naming = (kind: string, names: string[], beside: string): string =>
  `names no ${kind} tool; there is ${[...names, beside].join(', ')}`

/** A search of one hit. A backend that finds nothing works all the same. */
const TRIED_QUERY = 'test'

/** Asks what is at an address as `web_search_url` would be asked (CFG-54). */
export async function serveTrying(bus: Bus, client: TrustedClient, engines: () => string | undefined): Promise<void> {
  await bus.serve(searchTry, async ({ url }, { signal, deadline }) => {
    const options = deploymentOptions(searxng, { engines: engines() ?? LEGACY_ENGINES })
    const policy = { allowedDomains: null, blockedDomains: [] }
    const wanted = { query: TRIED_QUERY, count: 1, options, policy, wantsPageText: false }
    const request = searxng.request(wanted, { apiBase: url, apiKey: undefined })
    const limits: AskOptions = { deadline: Math.min(deadline, Date.now() + LEGACY_TIMEOUT_MS), signal }
    const asked = await askProvider(client, request, searxng, limits)
    return asked.status === 'ok' ? { ok: true, reason: null } : { ok: false, reason: reasonOf(asked) }
  })
}

const reasonOf = ({ tag, httpStatus }: ProviderFailure): string =>
  httpStatus === undefined ? tag : `${tag}, HTTP ${httpStatus}`
