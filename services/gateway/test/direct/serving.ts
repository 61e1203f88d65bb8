import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { inject, onTestFinished } from 'vitest'
import { alsoBare } from '../../src/app.ts'
import { openRateLimit } from '../../src/auth/rate-limit.ts'
import { fileRows } from '../../src/files/rows.ts'
import { codeExecutionRoute } from '../../src/routes/code-execution.ts'
import { fetchRoute } from '../../src/routes/fetch.ts'
import { mcpRoutes } from '../../src/routes/mcp.ts'
import { searchRoute } from '../../src/routes/search.ts'
import type { GatewaySettings } from '../../src/settings.ts'
import { openCapabilities } from '../../src/tools/capabilities.ts'
import { type Brokers, openBrokers, silent } from '../brokers.ts'
import { type Rig, startRig } from '../rig.ts'

export interface Direct extends Rig {
  brokers: Brokers
  /** A client with the first key, or another, connected to the web MCP server. */
  connect(options?: { key?: string; path?: string }): Promise<Client>
}

/** The routes that run tools without a model, over HTTP and with everything behind them. */
export async function startDirect(
  settings: Partial<GatewaySettings> = {},
  { keepsFiles = true } = {},
): Promise<Direct> {
  const brokers = await openBrokers()
  const { bus } = brokers
  const rig = await startRig({
    postgresUrl: inject('postgresUrl'),
    bus,
    settings: { webFetchEnabled: true, ...settings },
    routes: ({ cut, identities, policies, settings: current, db }) => {
      const needs = { bus, log: silent, settings: current, identities, policies, rateLimit: openRateLimit(current) }
      const files = keepsFiles ? { rows: fileRows(db, current) } : undefined
      const capabilities = openCapabilities({ bus, settings: current, log: silent })
      return [
        async (app) =>
          void app
            .register(fetchRoute(needs, cut))
            .register(searchRoute(needs, cut))
            .register(codeExecutionRoute({ ...needs, capabilities, files }, cut)),
        ...mcpRoutes({ ...needs, version: '0.0.0-test' }, cut).map(alsoBare),
      ]
    },
  })
  const clients: Client[] = []
  onTestFinished(async () => {
    for (const client of clients) await client.close()
    await rig.close()
  })
  return {
    ...rig,
    brokers,
    async connect({ key = rig.firstKey, path = '/mcp/web' } = {}) {
      const headers = { authorization: `Bearer ${key}` }
      const client = new Client({ name: 'strict', version: '1' })
      await client.connect(new StreamableHTTPClientTransport(new URL(path, rig.url), { requestInit: { headers } }))
      clients.push(client)
      return client
    },
  }
}

/** Work that ends only by its signal. */
export const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
