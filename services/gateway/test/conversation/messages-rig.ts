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

export interface StreamEvent {
  type: string
  index?: number
  content_block?: { type: string; id?: string; text?: string; input?: object }
  delta?: { type?: string; stop_reason?: string; partial_json?: string; text?: string }
  message?: { id: string; model: string; usage: object; container?: object }
  usage?: object
}

/** The events of a stream, each with its name; what is no frame is an error. */
export function eventsIn(text: string): (StreamEvent & { event: string })[] {
  const frames = text.split('\n\n')
  if (frames.pop() !== '') throw new Error('the stream ends in the middle of a frame')
  return frames
    .filter((frame) => !frame.startsWith(':'))
    .map((frame) => {
      const read = /^event: (\w+)\ndata: (.*)$/s.exec(frame)
      if (!read) throw new Error(`not a frame: ${frame}`)
      return { event: read[1] ?? '', ...(JSON.parse(read[2] ?? '') as StreamEvent) }
    })
}

/** blocks one after the other, numbered from 0 without gaps, each started and stopped once; one message. */
export function mistakesIn(events: (StreamEvent & { event: string })[]): string[] {
  const mistakes: string[] = []
  let open: number | undefined
  let next = 0
  for (const { event, type, index } of events) {
    if (event !== 'done' && event !== type) mistakes.push(`${event} is named ${type}`)
    if (event === 'content_block_start') {
      if (open !== undefined || index !== next) mistakes.push(`block ${index} starts while ${open} is open`)
      open = index
      next += 1
    } else if (event.startsWith('content_block') && index !== open) mistakes.push(`${event} of ${index}, not ${open}`)
    if (event === 'content_block_stop') open = undefined
  }
  for (const [name, times] of [
    ['message_start', 1],
    ['message_delta', 1],
    ['message_stop', 1],
    ['done', 1],
  ] as const) {
    const found = events.filter(({ event }) => event === name).length
    if (found !== times) mistakes.push(`${found} times ${name}`)
  }
  return mistakes
}
