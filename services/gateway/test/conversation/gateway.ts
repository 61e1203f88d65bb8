import { connect, type Socket } from 'node:net'
import type { FileStore } from '@tollgate/files'
import { openSecrets } from '@tollgate/secrets'
import type { Log } from '@tollgate/telemetry'
import { type FakeModel, fakeOpenAi, type ModelScript } from '@tollgate/testing'
import { inject, onTestFinished } from 'vitest'
import { openRateLimit } from '../../src/auth/rate-limit.ts'
import { fileClaims } from '../../src/files/claims.ts'
import { openProviderCopies } from '../../src/files/provider-copies.ts'
import { fileRows } from '../../src/files/rows.ts'
import { rememberMixedTurns } from '../../src/loop/mixed-turns.ts'
import { openServers, type ServersNeeds } from '../../src/mcp-client/servers.ts'
import { storedServers } from '../../src/mcp-client/stored.ts'
import { type ModelRegistry, openModels } from '../../src/models/registry.ts'
import { chatCompletionsRoute } from '../../src/routes/chat-completions.ts'
import { fileRoutes } from '../../src/routes/files.ts'
import { mcpServerRoutes } from '../../src/routes/mcp-servers.ts'
import { messagesRoute } from '../../src/routes/messages.ts'
import { relayRoutes } from '../../src/routes/relay.ts'
import { responsesRoute } from '../../src/routes/responses.ts'
import { routingRoutes } from '../../src/routes/routing.ts'
import { storedResponseRoutes } from '../../src/routes/stored-responses.ts'
import { openCoolDowns } from '../../src/routing/cool-down.ts'
import { noRouting, openRouting, type RoutingSettings } from '../../src/routing/routing.ts'
import type { GatewaySettings } from '../../src/settings.ts'
import { responseStore } from '../../src/stored-responses/store.ts'
import { openCapabilities } from '../../src/tools/capabilities.ts'
import { type Brokers, openBrokers, silent } from '../brokers.ts'
import { type Rig, startRig } from '../rig.ts'

/** A Fernet key, for tokens of MCP servers. */
const secrets = openSecrets(`${Buffer.alloc(32, 7).toString('base64url')}=`)

export interface Served extends Rig {
  brokers: Brokers
  fake: FakeModel
}

/** A gateway whose one provider, `fake`, is a scripted OpenAI server, over HTTP and with everything behind it. */
export async function startGateway(script: ModelScript, settings: Partial<GatewaySettings> = {}): Promise<Served> {
  const fake = await fakeOpenAi(script)
  const providers = { fake: { type: 'openai-compatible' as const, apiBase: `${fake.url}/v1`, models: [] } }
  const models = openModels({ providers, demo: false, log: silent })
  const served = await startWith(models, settings)
  onTestFinished(async () => {
    await models.close()
    await fake.close()
  })
  return { ...served, fake }
}

export async function startWith(models: ModelRegistry, settings: Partial<GatewaySettings> = {}) {
  const gateway = await openWith(models, settings)
  onTestFinished(() => gateway.close())
  return gateway
}

/** The same for all tests of a file, which closes it. */
export async function openWith(
  models: ModelRegistry,
  settings: Partial<GatewaySettings> = {},
  store?: FileStore,
  routing: RoutingSettings = noRouting,
  mcp: Partial<ServersNeeds> = {},
  log: Log = silent,
) {
  const brokers = await openBrokers()
  const { bus } = brokers
  const rig = await startRig({
    postgresUrl: inject('postgresUrl'),
    bus,
    settings: { webFetchEnabled: true, ...settings },
    routes: ({ cut, identities, policies, settings: current, db }) => {
      const capabilities = openCapabilities({ bus, settings: current, log: silent })
      const mixedTurns = rememberMixedTurns()
      const rateLimit = openRateLimit(current)
      const stored = storedServers({ db, bus })
      const mcpServers = { stored, secrets, settings: current, log: silent, version: 'test', ...mcp }
      const needs = {
        bus,
        log,
        settings: current,
        capabilities,
        policies,
        mixedTurns,
        identities,
        models,
        routing: openRouting(routing, models, () => 0),
        coolDowns: openCoolDowns(),
        rateLimit,
        openServers: openServers(mcpServers),
        responses: responseStore(db),
        files: store && { store, rows: fileRows(db, current), claims: fileClaims(db, log) },
        providerCopies: store && openProviderCopies({ store, log }),
      }
      return [
        async (app) => void app.register(chatCompletionsRoute(needs, cut)),
        async (app) => void app.register(messagesRoute(needs, cut)),
        async (app) => void app.register(responsesRoute(needs, cut)),
        async (app) => void app.register(storedResponseRoutes(needs)),
        async (app) => void app.register(fileRoutes(needs)),
        async (app) => void app.register(routingRoutes(needs, cut)),
        async (app) => void app.register(relayRoutes(needs, cut)),
        async (app) => void app.register(mcpServerRoutes({ db, ...mcpServers })),
      ]
    },
  })
  return { ...rig, brokers }
}

export const PATH = '/api/v1/chat/completions'

export interface Chunk {
  id: string
  choices: { delta: { content?: string; tool_calls?: unknown[] }; finish_reason: string | null }[]
  usage?: { prompt_tokens: number; completion_tokens: number }
  otari_tool_calls?: { id: string; type: string; status: string }[]
  error?: { message: string }
}

/** A stream as its frames: parsed chunks, and comments and `[DONE]` as texts. */
export function framesOf(text: string): (Chunk | string)[] {
  const frames = text.split('\n\n')
  if (frames.pop() !== '') throw new Error('the stream ends in the middle of a frame')
  return frames.map((frame) => {
    if (frame.startsWith(':')) return frame
    if (!frame.startsWith('data: ')) throw new Error(`not a frame: ${frame}`)
    return frame === 'data: [DONE]' ? '[DONE]' : (JSON.parse(frame.slice(6)) as Chunk)
  })
}

export const chunksOf = (text: string): Chunk[] => framesOf(text).filter((frame) => typeof frame !== 'string')
export const contentOf = (text: string): string =>
  chunksOf(text)
    .flatMap(({ choices }) => choices?.map(({ delta }) => delta.content ?? '') ?? [])
    .join('')

/** A client that is a bare connection, to close as clients do and as they should not; it may ask several times at once. */
export function rawPost(url: string, key: string, body: object, times = 1): { socket: Socket; received(): string } {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  const json = JSON.stringify(body)
  const head = [
    `POST ${PATH} HTTP/1.1`,
    `host: ${hostname}`,
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(json)}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${json}`.repeat(times))
  let received = ''
  socket.on('data', (bytes) => {
    received += String(bytes)
  })
  // a reset is what these tests are about
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  return { socket, received: () => received }
}
