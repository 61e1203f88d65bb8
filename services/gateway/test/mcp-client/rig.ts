import { openLog } from '@tollgate/telemetry'
import {
  dnsStub,
  type FakeJson,
  type FakeMcpServer,
  fakeAnthropic,
  fakeOpenAi,
  loopbackDialer,
  type RecordedRequest,
  type ScriptedReply,
} from '@tollgate/testing'
import { openModels } from '../../src/models/registry.ts'
import { noRouting, type RoutingSettings } from '../../src/routing/routing.ts'
import type { GatewaySettings } from '../../src/settings.ts'
import { silent } from '../brokers.ts'
import { openWith } from '../conversation/gateway.ts'

export const dialects = ['chat', 'messages', 'responses'] as const
export type ClientDialect = (typeof dialects)[number]

const paths = { chat: '/api/v1/chat/completions', messages: '/api/v1/messages', responses: '/api/v1/responses' }

export interface World {
  /** Addresses of names; others do not exist. */
  dns?: Record<string, string[]>
  /** Where public addresses lead. */
  ports?: Record<string, number | Record<number, number>>
  ca?: string[]
  settings?: Partial<GatewaySettings>
  times?: { connectMs: number; callMs: number }
  routing?: RoutingSettings
}

/** A gateway before a stand-in of each vendor, whose MCP client has names and addresses of the test's own. */
export async function openRig({ dns = {}, ports = {}, ca, settings = {}, times, routing = noRouting }: World = {}) {
  let script: ScriptedReply[] = []
  const next = (): ScriptedReply =>
    script.shift() ?? { status: 500, body: '{"error":{"message":"the script is over"}}' }
  const openai = await fakeOpenAi(next, { compatible: true })
  const anthropic = await fakeAnthropic(next)
  const models = openModels({
    providers: {
      anthropic: { type: 'anthropic', apiBase: anthropic.url, models: [] },
      fake: { type: 'openai-compatible', apiBase: `${openai.url}/v1`, models: [] },
    },
    demo: false,
    log: silent,
  })
  const lines: string[] = []
  const log = openLog({ service: 'test', level: 'debug', write: (line) => lines.push(line) })
  const names = dnsStub(dns)
  const dialer = loopbackDialer(ports)
  const gateway = await openWith(models, settings, undefined, routing, {
    reach: { resolve: names.resolve, dialer, ...(ca && { ca }) },
    log,
    ...(times && { times }),
  })

  function bodyOf(dialect: ClientDialect, members: object): object {
    const model = dialect === 'messages' ? 'anthropic:m' : 'fake:m'
    const asked = { model, ...(dialect === 'responses' ? { input: 'hi', store: false } : { messages }) }
    return { ...asked, ...(dialect === 'messages' && { max_tokens: 500 }), ...members }
  }
  const messages = [{ role: 'user', content: 'hi' }]

  return {
    gateway,
    brokers: gateway.brokers,
    openai,
    anthropic,
    names,
    dialer,
    logged: () => lines.join('\n'),
    /** What the models say next; what was asked and settled before is forgotten. */
    play(...replies: ScriptedReply[]): void {
      script = replies
      for (const fake of [openai, anthropic]) {
        fake.requests.length = 0
        fake.refusals.length = 0
      }
      lines.length = 0
      dialer.dialed.length = 0
      gateway.brokers.settled.length = 0
      gateway.brokers.toolLines.length = 0
      for (const calls of Object.values(gateway.brokers.asked)) if (Array.isArray(calls)) calls.length = 0
    },
    async post(dialect: ClientDialect, members: object, headers: Record<string, string> = {}, key = gateway.firstKey) {
      const response = await fetch(gateway.url + paths[dialect], {
        method: 'POST',
        headers: { 'otari-key': key, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(bodyOf(dialect, members)),
      })
      const text = await response.text()
      return { status: response.status, text, json: () => JSON.parse(text) as FakeJson }
    },
    bodyOf,
    /** Bodies that the models were sent. */
    sent: (): FakeJson[] => [...anthropic.requests, ...openai.requests].map(({ body }: RecordedRequest) => body),
    refusals: () => [...anthropic.refusals, ...openai.refusals],
    async close() {
      await gateway.close()
      await models.close()
      await Promise.all([openai.close(), anthropic.close()])
    },
  }
}
export type McpRig = Awaited<ReturnType<typeof openRig>>

/** Names of the functions that a model was offered. */
export const offeredIn = (body: FakeJson | undefined): string[] =>
  ((body?.tools ?? []) as { name?: string; function?: { name: string } }[]).map(
    (tool) => tool.function?.name ?? tool.name ?? '',
  )

export const inline = (server: Pick<FakeMcpServer, 'url'>, name = 'github', more: object = {}) => ({
  name,
  url: server.url,
  ...more,
})

/** The text of a refusal, in any dialect. */
export function detailOf(body: FakeJson): string {
  const { detail } = body as { detail: string | { error: { message: string } } }
  return typeof detail === 'string' ? detail : detail.error.message
}
