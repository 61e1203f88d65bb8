import { changedSettings } from '@tollgate/contracts'
import {
  type FakeJson,
  type FakeModel,
  fakeAnthropic,
  fakeOpenAi,
  fakeOpenAiResponses,
  type ScriptedReply,
} from '@tollgate/testing'
import { failureKinds } from '../../src/models/failure-kind.ts'
import { openModels } from '../../src/models/registry.ts'
import { defaultSettings, type GatewaySettings } from '../../src/settings.ts'
import { exaInstance, silent } from '../brokers.ts'
import { openWith } from './gateway.ts'
import { type Asked, clients, type DialectName, type Heard } from './matrix-clients.ts'

export type ProviderName = 'claude' | 'clone' | 'openai' | 'gpt' | 'other'

/** The dialect that each provider's wire is. */
export const wireOf = {
  claude: 'messages',
  clone: 'messages',
  openai: 'responses',
  gpt: 'chat',
  other: 'chat',
} as const

const chain = (...candidates: ProviderName[]) => ({
  candidates: candidates.map((name) => ({ model: `${name}:m` })),
  coolDownMs: 0,
  retryOn: failureKinds,
})

/** A way to ask: a dialect, whole or streamed. */
export const ways = (['chat', 'messages', 'responses'] as const).flatMap((dialect) =>
  [false, true].map((streamed) => ({ dialect, streamed })),
)
export type Way = (typeof ways)[number]

/** Anthropic, OpenAI at the door that such a client's requests go to, and a server of neither. */
export const providersFor = ({ dialect }: Way) =>
  ['claude', dialect === 'responses' ? 'openai' : 'gpt', 'other'] as const

type More = Pick<Asked, 'extra' | 'headers'>
const messages = [{ role: 'user', content: 'Hello' }]
const paths = {
  chat: ['/api/v1/chat/completions', { messages }],
  messages: ['/api/v1/messages', { messages, max_tokens: 2_000 }],
  responses: ['/api/v1/responses', { input: 'Hello' }],
} as const

/** One gateway before strict stand-ins: Anthropic, a server that speaks its API, both doors of OpenAI, and one more. */
export async function openRig(given: Partial<GatewaySettings> = {}) {
  let script: ScriptedReply[] = []
  const next = (): ScriptedReply =>
    script.shift() ?? { status: 500, body: '{"error":{"message":"the script is over"}}' }
  const fakes: Record<ProviderName, FakeModel> = {
    claude: await fakeAnthropic(next),
    clone: await fakeAnthropic(next, { compatible: true }),
    openai: await fakeOpenAiResponses(next),
    gpt: await fakeOpenAi(next),
    other: await fakeOpenAi(next, { compatible: true }),
  }
  const models = openModels({
    providers: {
      claude: { type: 'anthropic', apiBase: fakes.claude.url, models: [] },
      clone: { type: 'anthropic-compatible', apiBase: fakes.clone.url, models: [] },
      openai: { type: 'openai', apiBase: `${fakes.openai.url}/v1`, models: [] },
      gpt: { type: 'openai', apiBase: `${fakes.gpt.url}/v1`, models: [] },
      other: { type: 'openai-compatible', apiBase: `${fakes.other.url}/v1`, models: [] },
    },
    demo: false,
    log: silent,
  })
  const policies = { back: chain('claude', 'other'), forth: chain('other', 'claude'), twins: chain('claude', 'clone') }
  const gateway = await openWith(models, given, undefined, { policies, aliases: {} })
  const { brokers, settings } = gateway
  const works = { ...brokers }

  const modelOf = (name: string) => (name in policies ? name : `${name}:m`)

  function post(model: string, { dialect, streamed: stream }: Way, tools: object[], { extra, headers }: More = {}) {
    const [path, input] = paths[dialect]
    const body = { model: modelOf(model), stream, tools, ...input, ...extra }
    return gateway.send('POST', path, { key: gateway.firstKey, body, ...(headers && { headers }) })
  }

  return {
    gateway,
    brokers,
    fakes,
    /** The deployment as it is when nothing is said of it, but for this. */
    deploy({ search = true, ...changed }: Partial<GatewaySettings> & { search?: boolean } = {}): void {
      Object.assign(settings, defaultSettings, { webFetchEnabled: true }, changed)
      brokers.inLoop = search ? exaInstance : null
      brokers.bus.announce(changedSettings, {})
    },
    /** What the models say next; what was asked and settled before is forgotten, and the services are well again. */
    play(...replies: ScriptedReply[]): void {
      script = replies
      const { inLoop: _, ...well } = works
      Object.assign(brokers, well)
      for (const fake of Object.values(fakes)) {
        fake.requests.length = 0
        fake.refusals.length = 0
      }
      brokers.settled.length = 0
      for (const calls of Object.values(brokers.asked)) if (Array.isArray(calls)) calls.length = 0
    },
    /** By the vendor's own client. */
    ask(model: string, { dialect, streamed }: Way, tools: object[], more: Partial<Asked> = {}): Promise<Heard> {
      const client = clients[dialect]
      return client.ask({
        url: gateway.url,
        key: gateway.firstKey,
        model: modelOf(model),
        streamed,
        history: [client.user('Hello')],
        tools: tools as Asked['tools'],
        ...more,
      })
    },
    /** Tools of an upstream's request, a function by its name and any other as it came. */
    offered: (name: ProviderName, round = 0): unknown[] => offeredIn(fakes[name].requests.at(round)?.body),
    /** What a model that is asked in Chat reads of its calls. */
    resultsIn: (name: ProviderName, round: number): string[] =>
      ((fakes[name].requests[round]?.body.messages ?? []) as { role: string; content: string }[]).flatMap(
        ({ role, content }) => (role === 'tool' ? [content] : []),
      ),
    sent: (name: ProviderName): string[] => fakes[name].requests.map(({ text }) => text),
    policy: (kind: 'code-execution-policy' | 'web-search', body?: object) =>
      gateway.send(body ? 'PUT' : 'DELETE', `/api/v1/workspaces/default/${kind}`, {
        key: gateway.masterKey,
        ...(body && { body }),
      }),
    /** The answer as it goes over the wire. */
    post,
    /** The status and the words of a refusal. */
    async refusal(...asked: Parameters<typeof post>): Promise<[number, string]> {
      const { status, text } = await post(...asked)
      return [status, text]
    },
    async close() {
      await gateway.close()
      await models.close()
      await Promise.all(Object.values(fakes).map((fake) => fake.close()))
    },
  }
}

/** A function has an `input_schema` or `parameters`, in Chat one level deeper. */
function offeredIn(body: FakeJson | undefined): unknown[] {
  return ((body?.tools ?? []) as FakeJson[]).map((tool) => {
    const described = (tool.function ?? tool) as FakeJson
    return 'parameters' in described || 'input_schema' in described ? described.name : tool
  })
}

/** A declaration as a client of the dialect writes it. */
export const declared = (type: string, dialect: DialectName, more: object = {}): object => ({
  type,
  ...(dialect === 'messages' && !type.startsWith('otari_') && { name: type.replace(/_\d+$|_preview$/, '') }),
  ...more,
})
