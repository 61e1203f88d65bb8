import { Fault } from '@tollgate/contracts'
import type { JsonObject, Turn } from '../../src/conversation/turn.ts'
import type { ExecutorChoice } from '../../src/loop/executors.ts'
import type { Target } from '../../src/loop/keywords.ts'
import { plan } from '../../src/loop/plan.ts'
import { prepared } from '../../src/loop/prepared.ts'
import { narrowsNothing, type Policies } from '../../src/policies/policy.ts'
import { defaultSettings, type GatewaySettings } from '../../src/settings.ts'
import type { Capabilities } from '../../src/tools/capabilities.ts'
import { exaInstance } from '../brokers.ts'
import { turnOf } from '../turns.ts'

const everything: Capabilities = { search: exaInstance, fetch: true, sandbox: true, intercept: false, executor: 'auto' }
export const chatTarget: Target = { vendor: 'other', model: 'm', dialect: 'chat' }
export const anthropic: Target = { vendor: 'anthropic', model: 'claude', dialect: 'messages' }

export interface Given {
  turn?: Partial<Turn>
  capabilities?: Partial<Capabilities>
  settings?: Partial<GatewaySettings>
  executors?: ExecutorChoice
  target?: Target
  policies?: { code?: Partial<Policies['code']>; web?: Partial<Policies['web']> }
}

export function planOf(
  tools: JsonObject[],
  { turn, capabilities, settings, executors = {}, target = chatTarget, policies: { code, web } = {} }: Given = {},
) {
  const made = turnOf(tools, turn)
  const whole = { ...defaultSettings, ...settings }
  const planned = plan({
    turn: made,
    bodyText: JSON.stringify(made.raw),
    settings: whole,
    capabilities: { ...everything, ...capabilities },
    executors,
    policies: { code: { ...narrowsNothing.code, ...code }, web: { ...narrowsNothing.web, ...web } },
    target,
  })
  return prepared(planned, [], whole)
}

export const refusal = (tools: JsonObject[], given?: Given): [number, string] => {
  try {
    planOf(tools, given)
  } catch (thrown) {
    const { status, message } = Fault.from(thrown)
    return [status, message]
  }
  throw new Error('nothing was refused')
}
export const ran = (tools: JsonObject[], given?: Given) => [...planOf(tools, given).owned.keys()]
