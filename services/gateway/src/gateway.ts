import type { Bus } from '@tollgate/bus'
import type { SeatSettings } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import type { FileStore } from '@tollgate/files'
import { openSecrets, type Secrets } from '@tollgate/secrets'
import type { CommonNeeds, Running } from '@tollgate/service'
import type { FastifyInstance } from 'fastify'
import { alsoBare, buildApp } from './app.ts'
import { masterKeyHash, migrateGateway } from './auth/first-start.ts'
import { openIdentities } from './auth/identities.ts'
import { keyStore } from './auth/key-store.ts'
import { openLastUsed } from './auth/last-used.ts'
import { openRateLimit } from './auth/rate-limit.ts'
import { fileClaims } from './files/claims.ts'
import { openProviderCopies } from './files/provider-copies.ts'
import { fileRows } from './files/rows.ts'
import { sweepRegularly } from './files/sweep.ts'
import { rememberMixedTurns } from './loop/mixed-turns.ts'
import { openToolRefusals } from './loop/tool-refusals.ts'
import { openServers } from './mcp-client/servers.ts'
import { storedServers } from './mcp-client/stored.ts'
import { noDiscovery, openDiscovery } from './models/discovery.ts'
import { openModels, type ProviderSettings } from './models/registry.ts'
import { openPolicies } from './policies/known-policies.ts'
import { chatCompletionsRoute } from './routes/chat-completions.ts'
import { codeExecutionRoute } from './routes/code-execution.ts'
import { codePolicyRoutes } from './routes/code-policy.ts'
import { fetchRoute } from './routes/fetch.ts'
import { fileRoutes } from './routes/files.ts'
import { keyRoutes } from './routes/keys.ts'
import { mcpRoutes } from './routes/mcp.ts'
import { mcpServerRoutes } from './routes/mcp-servers.ts'
import { messagesRoute } from './routes/messages.ts'
import { modelRoutes } from './routes/models.ts'
import { pricingRoutes } from './routes/pricing.ts'
import { providerToolRoutes } from './routes/provider-tools.ts'
import { relayRoutes } from './routes/relay.ts'
import { responsesRoute } from './routes/responses.ts'
import { routingRoutes } from './routes/routing.ts'
import { sandboxCredentialRoutes } from './routes/sandbox-credential.ts'
import { searchRoute } from './routes/search.ts'
import { searchToolRoutes } from './routes/search-tools.ts'
import { storedResponseRoutes } from './routes/stored-responses.ts'
import { toolSettingRoutes } from './routes/tool-settings.ts'
import { toolRoutes } from './routes/tools.ts'
import { usageRoutes } from './routes/usage.ts'
import { userRoutes } from './routes/users.ts'
import { webPolicyRoutes } from './routes/web-policy.ts'
import { workspaceRoutes } from './routes/workspaces.ts'
import { openCoolDowns } from './routing/cool-down.ts'
import { listedModels } from './routing/listed.ts'
import { noRouting, openRouting, type RoutingSettings } from './routing/routing.ts'
import { openRuntimeSeats } from './seat-changes/runtime.ts'
import type { GatewaySettings } from './settings.ts'
import { responseStore } from './stored-responses/store.ts'
import { sweepResponses } from './stored-responses/sweep.ts'
import type { GatewayDb } from './tables.ts'
import { openRuntimeSettings } from './tool-settings/runtime.ts'
import { openCapabilities } from './tools/capabilities.ts'

export interface GatewayNeeds extends CommonNeeds {
  db: Database
  /** Where the bytes of files lie; without it files are switched off (FI-25). */
  files?: FileStore
  settings: GatewaySettings
  /** What encrypts the tokens of stored MCP servers; none can be stored without it. */
  secrets?: Secrets
  version: string
  host: string
  /** 0 takes any free one. */
  port: number
  /** CFG-37; the one made by `ensureMasterKey` when absent. */
  masterKey?: string
  providers: Readonly<Record<string, ProviderSettings>>
  demoProvider: boolean
  /** Models by names of the deployment's own; none when absent. */
  seats?: Readonly<Record<string, SeatSettings>>
  /** Named policies and aliases; none when absent. */
  routing?: RoutingSettings
}

const READY_MS = 1_000

/** Serves the HTTP API. Resolves once it listens; the first start's keys are made by `ensureMasterKey`, `ensureFirstKey`. */
export async function startGateway(needs: GatewayNeeds): Promise<Running & { url: string }> {
  const { bus, log } = needs
  const settings = { ...needs.settings }
  const db = await migrateGateway(needs.db)
  const runtime = await openRuntimeSettings({ db, bus, log, settings })
  const lastUsed = openLastUsed(db, log)
  const identities = openIdentities({
    db,
    bus,
    masterKeyHash: await masterKeyHash(db, needs.masterKey),
    used: lastUsed.note,
  })
  const configured = needs.seats ?? {}
  const models = openModels({ providers: needs.providers, seats: configured, demo: needs.demoProvider, log })
  const routing = openRouting(needs.routing ?? noRouting, models)
  const seats = await openRuntimeSeats({ db, bus, log, configured, models })
  const coolDowns = openCoolDowns()
  const discovery =
    settings.modelDiscoveryIntervalMs > 0
      ? openDiscovery({
          providers: models.instances().flatMap((one) => (one.models.length === 0 ? [one.provider] : [])),
          everyMs: settings.modelDiscoveryIntervalMs,
          log,
        })
      : noDiscovery
  const capabilities = openCapabilities({ bus, settings, log })
  const policies = openPolicies({ db, bus, settings })
  const mixedTurns = rememberMixedTurns()
  const toolRefusals = openToolRefusals(log)
  const rateLimit = openRateLimit(settings)
  const direct = { bus, log, settings, identities, policies, rateLimit }
  const responses = responseStore(db)
  const sweepingResponses = sweepResponses(responses, settings, log)
  const stored = storedServers({ db, bus })
  const mcpServers = { stored, settings, secrets: needs.secrets ?? openSecrets(undefined), log, version: needs.version }
  const files = needs.files && { store: needs.files, rows: fileRows(db, settings), claims: fileClaims(db, log) }
  const providerCopies = files && openProviderCopies({ store: files.store, log })
  const ofLoop = {
    capabilities,
    mixedTurns,
    toolRefusals,
    models,
    routing,
    coolDowns,
    openServers: openServers(mcpServers),
  }
  const answers = { ...direct, ...ofLoop, responses, files, providerCopies }
  const sweeping = files && sweepRegularly({ ...files, log }, settings.filesSweepIntervalMs)
  const notReady = () => whyNotReady(bus, db)

  const { server, drain } = await buildApp({
    log,
    identities,
    version: needs.version,
    bodyLimitBytes: settings.bodyLimitBytes,
    unreadAnswerMs: settings.unreadAnswerMs,
    notReady,
    routes: (cut) => [
      chatCompletionsRoute(answers, cut),
      messagesRoute(answers, cut),
      responsesRoute(answers, cut),
      storedResponseRoutes({ responses }),
      fetchRoute(direct, cut),
      searchRoute(direct, cut),
      searchToolRoutes({ bus, settings }, cut),
      codeExecutionRoute({ ...direct, capabilities, files }, cut),
      ...mcpRoutes({ ...direct, version: needs.version }, cut).map(alsoBare),
      modelRoutes({
        listModels: () => listedModels(models, routing, discovery),
        refusedTools: toolRefusals.recently,
        seats,
      }),
      providerToolRoutes({ models, settings }, cut),
      routingRoutes(answers, cut),
      relayRoutes(answers, cut),
      toolRoutes({ capabilities }),
      keyRoutes({ keys: keyStore(db), identities }),
      userRoutes({ db, identities }),
      workspaceRoutes({ db }),
      codePolicyRoutes({ db, policies, settings, capabilities }),
      webPolicyRoutes({ db, policies, settings, capabilities }),
      mcpServerRoutes({ db, ...mcpServers }),
      pricingRoutes({ bus }),
      usageRoutes({ bus }),
      fileRoutes({ files, identities, settings, log }),
      sandboxCredentialRoutes({ bus }),
      toolSettingRoutes({ bus, settings, runtime }, cut),
    ],
  })
  const url = await listen(server, needs)

  return {
    url,
    notReady,
    async close(deadline) {
      const ended = await drain.close(deadline)
      identities.close()
      policies.close()
      stored.close()
      coolDowns.close()
      // while there are connections to remove them with
      await providerCopies?.close(deadline)
      await Promise.all([
        lastUsed.close(),
        runtime.close(),
        seats.close(),
        models.close(),
        discovery.close(),
        sweeping?.close(),
        sweepingResponses.close(),
      ])
      return ended
    },
  }
}

async function listen(server: FastifyInstance, { host, port }: GatewayNeeds): Promise<string> {
  try {
    return await server.listen({ host, port })
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? error.code : 'unknown'
    throw new Error(`cannot listen on ${host}, port ${port} (${why}): set another host or port`, { cause: error })
  }
}

/** New work is taken only where what it costs can be recorded. */
async function whyNotReady(bus: Bus, db: GatewayDb): Promise<string | undefined> {
  const { connected, canRecord } = bus.status()
  if (!connected) return 'the bus is not connected'
  if (!canRecord) return 'the bus cannot record usage'
  return db.ping(READY_MS)
}
