import Anthropic from '@anthropic-ai/sdk'
import {
  type FakeJson,
  type FakeModel,
  fakeAnthropic,
  fakeOpenAi,
  type RecordedRequest,
  type ScriptedReply,
} from '@tollgate/testing'
import { openModels } from '../../src/models/registry.ts'
import type { GatewaySettings } from '../../src/settings.ts'
import { silent } from '../brokers.ts'
import { openWith } from './gateway.ts'

export const wires = ['anthropic', 'openai-chat'] as const
export type ProviderWire = (typeof wires)[number]

export type Ask = Partial<Omit<Anthropic.MessageCreateParamsNonStreaming, 'stream' | 'tools' | 'system'>> & {
  tools?: object[]
  system?: string | object[]
  [more: string]: unknown
}

/** A gateway before one strict stand-in of each vendor, with the vendor's own client before it. */
export async function openMessagesRig(settings: Partial<GatewaySettings> = {}) {
  let script: ScriptedReply[] = []
  const next = (): ScriptedReply =>
    script.shift() ?? { status: 500, body: '{"error":{"message":"the script is over"}}' }
  const fakes: Record<ProviderWire | 'compatible', FakeModel> = {
    anthropic: await fakeAnthropic(next),
    'openai-chat': await fakeOpenAi(next, { compatible: true }),
    compatible: await fakeAnthropic(next, { compatible: true }),
  }
  const models = openModels({
    providers: {
      anthropic: { type: 'anthropic', apiBase: fakes.anthropic.url, models: [] },
      'openai-chat': { type: 'openai-compatible', apiBase: `${fakes['openai-chat'].url}/v1`, models: [] },
      compatible: { type: 'anthropic-compatible', apiBase: fakes.compatible.url, models: [] },
    },
    demo: true,
    log: silent,
  })
  const gateway = await openWith(models, settings)
  const sdk = new Anthropic({ apiKey: gateway.firstKey, baseURL: `${gateway.url}/api`, maxRetries: 0 })
  const bodyOf = (provider: string, ask: Ask) =>
    ({
      model: `${provider}:m`,
      max_tokens: 2_000,
      messages: [{ role: 'user', content: 'hi' }],
      ...ask,
    }) as Anthropic.MessageCreateParamsNonStreaming

  return {
    sdk,
    fakes,
    gateway,
    brokers: gateway.brokers,
    /** What the models say next; what was asked and settled before is forgotten. */
    play(...replies: ScriptedReply[]): void {
      script = replies
      for (const fake of Object.values(fakes)) {
        fake.requests.length = 0
        fake.refusals.length = 0
      }
      gateway.brokers.settled.length = 0
      for (const calls of Object.values(gateway.brokers.asked)) if (Array.isArray(calls)) calls.length = 0
    },
    ask(provider: string, streamed: boolean, ask: Ask = {}, headers: Record<string, string> = {}) {
      const body = bodyOf(provider, ask)
      return streamed ? sdk.messages.stream(body, { headers }).finalMessage() : sdk.messages.create(body, { headers })
    },
    /** The answer as it goes over the wire. */
    post(provider: string, ask: Ask = {}, headers: Record<string, string> = {}, path = '/api/v1/messages') {
      return fetch(gateway.url + path, {
        method: 'POST',
        headers: { 'otari-key': gateway.firstKey, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(bodyOf(provider, ask)),
      })
    },
    sent: (provider: ProviderWire | 'compatible'): FakeJson[] =>
      fakes[provider].requests.map(({ body }: RecordedRequest) => body),
    async close() {
      await gateway.close()
      await models.close()
      await Promise.all(Object.values(fakes).map((fake) => fake.close()))
    },
  }
}
