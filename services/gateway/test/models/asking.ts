import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@tollgate/contracts'
import { openLog } from '@tollgate/telemetry'
import type { FakeModel } from '@tollgate/testing'
import { type Answer, blocksOf, collectAnswer } from '../../src/conversation/collect.ts'
import type { ModelEvent } from '../../src/conversation/events.ts'
import type { JsonObject, ModelRequest } from '../../src/conversation/turn.ts'
import { parseChat } from '../../src/dialects/chat/parse.ts'
import type { ByteSink } from '../../src/models/forward.ts'
import { type ModelRegistry, openModels, type ProviderSettings } from '../../src/models/registry.ts'
import type { UpstreamReply } from '../../src/models/upstream.ts'
import type { Origin } from '../../src/models/upstream-fault.ts'
import { toldBy } from '../told.ts'

export const silent = openLog({ service: 'test', level: 'silent' })
export const origin: Origin = { name: 'up', wire: 'openai-chat', hidden: [] }

/** A request as the loop would make it of a Chat body, without gateway tools. */
export function chatRequest(body: JsonObject, changes: Partial<ModelRequest> = {}): ModelRequest {
  const whole = { ...body, model: body.model ?? 'up:m', messages: body.messages ?? [{ role: 'user', content: 'hi' }] }
  const turn = parseChat(whole, JSON.stringify(whole).length)
  return {
    turn,
    model: 'm',
    messages: turn.messages,
    tools: turn.tools,
    toolChoice: turn.toolChoice,
    parallelToolCalls: turn.parallelToolCalls,
    stream: turn.stream,
    ...changes,
  }
}

export const soon = (ms = 10_000) => ({ signal: new AbortController().signal, deadline: Date.now() + ms })

type Named = Omit<ProviderSettings, 'models' | 'apiBase'>

/** A registry whose instance `up` is the fake. */
export function modelsAt(
  fake: Pick<FakeModel, 'url'>,
  settings: Named & { type: NonNullable<ProviderSettings['type']> },
): ModelRegistry {
  const apiBase = fake.url + (settings.type === 'gemini' ? '/v1beta' : settings.type.startsWith('openai') ? '/v1' : '')
  return openModels({ providers: { up: { ...settings, apiBase, models: [] } }, demo: false, log: silent })
}

export async function eventsOf(models: ModelRegistry, request: ModelRequest, limits = soon()): Promise<ModelEvent[]> {
  return toldBy((tell) => models.resolve('up:m').provider.ask(request, limits, tell))
}

export const answerOf = (models: ModelRegistry, request: ModelRequest): Promise<Answer> =>
  collectAnswer((tell) => models.resolve('up:m').provider.ask(request, soon(), tell))

/** What an answer holds, in short: kind and text of each block. */
export const saidIn = (answer: Answer) =>
  blocksOf(answer).map(({ start, text }) => ({ ...start, ...(text !== '' && { text }) }))

export async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  try {
    await promise
  } catch (error) {
    return Fault.from(error)
  }
  throw new Error('nothing was thrown')
}

/** A reply whose body comes in exactly these chunks. */
export function replyOf(
  chunks: (string | Buffer)[],
  mediaType = 'text/event-stream',
): UpstreamReply & { settled(): boolean } {
  let settled = false
  async function* bytes(): AsyncGenerator<Buffer, void> {
    for (const chunk of chunks) yield Buffer.from(chunk)
  }
  return {
    status: 200,
    mediaType,
    chunks: bytes,
    bytes: async () => Buffer.concat(chunks.map((chunk) => Buffer.from(chunk))),
    async settle() {
      settled = true
    },
    settled: () => settled,
  }
}

/** A client that keeps what it is sent; a slow one makes every write wait. */
export function sinkOf({ slowMs = 0 } = {}) {
  const writes: Buffer[] = []
  let head: { status: number; headers: Record<string, string> } | undefined
  const sink: ByteSink = {
    begin(begun) {
      if (head) throw new Error('begun twice')
      head = begun
    },
    write(bytes) {
      if (!head) throw new Error('written before it was begun')
      writes.push(Buffer.from(bytes))
      return slowMs > 0 ? sleep(slowMs) : undefined
    },
  }
  return { sink, writes, head: () => head, text: () => Buffer.concat(writes).toString('utf8') }
}

export const sse = (...chunks: unknown[]): string =>
  chunks.map((chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`).join('')

/** A Chat chunk with one choice. */
export const chunk = (delta: JsonObject, finish: string | null = null, more: JsonObject = {}): JsonObject => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1_792_000_000,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
