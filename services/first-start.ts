import type { Bus } from '@tollgate/bus'
import type { Config } from '@tollgate/config'
import { billingSetPrice, sandboxDescribe, searchDescribe } from '@tollgate/contracts'

const ASK_MS = 5_000

/** Rows that let a first try work under `require_pricing`: nothing costs anything until the operator says so. */
export async function setStarterPrices(bus: Bus): Promise<void> {
  const deadline = Date.now() + ASK_MS
  for (const modelKey of ['otari:web_search', 'otari:web_fetch', 'otari:code_execution', 'demo:*']) {
    await bus.call(
      billingSetPrice,
      {
        kind: 'model',
        modelKey,
        inputPricePerMillion: '0',
        outputPricePerMillion: '0',
        cacheReadPricePerMillion: null,
        cacheWritePricePerMillion: null,
        effectiveAt: new Date().toISOString(),
      },
      { deadline },
    )
  }
}

interface Welcome {
  config: Config
  masterKey: string | undefined
  firstKey: string | undefined
  bus: Bus
  url: string
}

/** What is printed when a standalone Tollgate is up: where it is, what its tools need, and, the first time, keys to try it with. */
export async function welcome({ config, masterKey, firstKey, bus, url }: Welcome): Promise<string> {
  const at = url.replace(/\/\/(0\.0\.0\.0|\[::\])/, '//localhost')
  const tools = await toolLines(config, bus)
  const codeRuns = tools.some(({ name, needs }) => name === 'otari_code_execution' && needs === undefined)
  return [
    '',
    `Tollgate is at ${at}  (API documentation: ${at}/docs)`,
    ...(config.mcp_web_enabled ? [`The web MCP server is at ${at}/mcp/web`] : []),
    '',
    ...tools.map(
      ({ name, needs }) => `  ${name.padEnd(21)} ${needs === undefined ? 'available' : `not available: ${needs}`}`,
    ),
    ...keyLines({ masterKey, firstKey }),
    ...(firstKey ? ['', 'Try it, no model provider needed:', '', ...curlLines(at, firstKey, codeRuns)] : []),
    '',
  ].join('\n')
}

/** Keys made at the first start; later there is nothing to show. */
export function keyLines({ masterKey, firstKey }: Pick<Welcome, 'masterKey' | 'firstKey'>): string[] {
  if (masterKey === undefined && firstKey === undefined) return []
  return [
    '',
    'Shown this once, only their hashes are kept:',
    ...(masterKey === undefined ? [] : [`  master key  ${masterKey}`]),
    ...(firstKey === undefined ? [] : [`  API key     ${firstKey}`]),
  ]
}

async function toolLines(config: Config, bus: Bus): Promise<{ name: string; needs: string | undefined }[]> {
  const deadline = Date.now() + ASK_MS
  const [search, sandbox] = await Promise.all([
    bus.call(searchDescribe, {}, { deadline }),
    bus.call(sandboxDescribe, {}, { deadline }),
  ])
  return [
    {
      name: 'otari_web_search',
      needs: search.inLoop ? undefined : 'set OTARI_WEB_SEARCH_URL to a SearXNG, or name a provider under search_tools',
    },
    { name: 'otari_web_fetch', needs: config.web_fetch_enabled ? undefined : 'set OTARI_WEB_FETCH_ENABLED=true' },
    {
      name: 'otari_code_execution',
      needs: sandbox.available ? undefined : (sandbox.reason ?? 'set OTARI_SANDBOX_URL'),
    },
  ]
}

function curlLines(url: string, key: string, codeRuns: boolean): string[] {
  const curl = (body: object) =>
    `curl -sS ${url}/v1/chat/completions -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`
  const ask = (content: string) => [{ role: 'user', content }]
  const tool = codeRuns
    ? { model: 'demo:tools', messages: ask('calculate 6*7'), tools: [{ type: 'otari_code_execution' }] }
    : { model: 'demo:tools', messages: ask('hello'), stream: true }
  return [curl({ model: 'demo:echo', messages: ask('hello') }), '', curl(tool)]
}
