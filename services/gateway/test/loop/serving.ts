import type { AnswerEvent } from '../../src/conversation/events.ts'
import type { Turn } from '../../src/conversation/turn.ts'
import { admit, type LoopNeeds, type TurnRequest } from '../../src/loop/admission.ts'
import { answering } from '../../src/loop/answering.ts'
import { rememberMixedTurns } from '../../src/loop/mixed-turns.ts'
import { defaultPolicies } from '../../src/policies/policy.ts'
import { defaultSettings, type GatewaySettings } from '../../src/settings.ts'
import { openCapabilities } from '../../src/tools/capabilities.ts'
import { type Brokers, openBrokers, silent, tenancy } from '../brokers.ts'
import { type Telling, toldBy } from '../told.ts'
import { type ScriptedProvider, scripted } from './scripted-provider.ts'

/** The loop over a memory bus, for one request after the other. */
export async function openLoop(changed: Partial<GatewaySettings> = {}) {
  const brokers = await openBrokers()
  const settings = { ...defaultSettings, webFetchEnabled: true, ...changed }
  const capabilities = openCapabilities({ bus: brokers.bus, settings, log: silent })
  /** What holds for the workspace, and how often it was asked for. */
  const workspace = { policies: defaultPolicies(settings), asked: 0 }
  const policies = {
    of: async () => {
      workspace.asked += 1
      return workspace.policies
    },
  }
  const mixedTurns = rememberMixedTurns()
  const needs: LoopNeeds = { bus: brokers.bus, log: silent, settings, capabilities, policies, mixedTurns }
  return {
    brokers,
    workspace,
    serve: (turn: Turn, script: Script, more?: Partial<TurnRequest>) => serve(needs, turn, script, more),
  }
}

const typeOf = {
  'openai-chat': 'openai-compatible',
  'openai-responses': 'openai-responses',
  anthropic: 'anthropic',
  gemini: 'gemini',
  demo: 'demo',
} as const

type Script = Parameters<typeof scripted>[0] | ScriptedProvider[]

function serve(needs: LoopNeeds, turn: Turn, script: Script, more: Partial<TurnRequest> = {}): Telling<AnswerEvent> {
  const providers = script.every((entry) => 'ask' in entry)
    ? script
    : [scripted(script as Parameters<typeof scripted>[0])]
  const request: TurnRequest = {
    turn,
    bodyText: JSON.stringify(turn.raw),
    headers: {},
    candidates: providers.map((provider) => ({ provider, model: 'm', type: typeOf[provider.wire] })),
    tenancy,
    budgetExempt: false,
    endpoint: '/api/v1/chat/completions',
    signal: new AbortController().signal,
    deadline: Date.now() + 10_000,
    ...more,
  }
  return async (tell) => answering(needs, request, await admit(needs, request), tell)
}

export type { Brokers }

/** What a client would gather from the events: texts and calls in their order, tools that ran, and the end. */
export async function gather(answer: Telling<AnswerEvent>) {
  return read(await toldBy(answer))
}

export function read(all: AnswerEvent[]) {
  const blocks: { kind: string; text: string; id?: string; name?: string }[] = []
  for (const event of all) {
    if (event.type === 'open') blocks[event.index] = { text: '', ...event.block } as (typeof blocks)[number]
    if (event.type === 'delta') (blocks[event.index] as { text: string }).text += event.text
  }
  const tools = all.flatMap((event) => (event.type === 'tool' && event.phase === 'finished' ? [event] : []))
  return {
    all,
    blocks,
    tools,
    text: blocks.flatMap(({ kind, text }) => (kind === 'text' ? [text] : [])).join('|'),
    calls: blocks.filter(({ kind }) => kind === 'call'),
    count: (type: AnswerEvent['type']) => all.filter((event) => event.type === type).length,
    last: all.at(-1),
  }
}
