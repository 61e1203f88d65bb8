import type { Message, ModelRequest, ToolChoice, ToolEntry, Wire } from '../conversation/turn.ts'
import { isHidden } from './deferral.ts'
import { systemMessage } from './hints.ts'
import { hasRounds, type Plan } from './plan.ts'
import { builtinNamed } from './provider-tools.ts'

type Offer = Pick<ModelRequest, 'messages' | 'tools' | 'toolChoice' | 'parallelToolCalls'>

const LAST_ROUND = 'No more tool calls are available. Answer now from the results you already have.'

/** Wires that refuse a transcript with tool calls in it unless tools are declared beside it (L-08). */
const needsTools: ReadonlySet<Wire> = new Set<Wire>(['anthropic'])

/** What a round offers: a forced choice holds for the first one only, or no answer could ever come (T-28). */
export function offer(plan: Plan, messages: Message[], round: number): Offer {
  const forced = round > 1 && plan.toolChoice !== undefined && plan.toolChoice.type !== 'none'
  return {
    messages,
    tools: known(plan),
    toolChoice: forced ? { type: 'auto' } : plan.toolChoice,
    parallelToolCalls: plan.turn.parallelToolCalls,
  }
}

/** What the last round offers: nothing of ours, and the word that an answer is wanted now (L-06, L-08). */
export function lastOffer(plan: Plan, messages: Message[], round: number, wire: Wire): Offer {
  if (!hasRounds(plan)) return offer(plan, messages, round)
  const theirs = known(plan).filter((entry) => !isOwned(plan, entry) && !isOfBackend(plan, entry))
  const asked = [...messages, systemMessage(LAST_ROUND)]
  if (theirs.length > 0) {
    return { ...offer(plan, asked, round), tools: theirs, toolChoice: choiceAmong(theirs, plan, round) }
  }
  const bare = { messages: asked, parallelToolCalls: undefined }
  return needsTools.has(wire) && messages.some(holdsToolUse)
    ? { ...bare, tools: known(plan), toolChoice: { type: 'none' } }
    : { ...bare, tools: [], toolChoice: undefined }
}

/** What the model knows of: a tool that waits is offered once it is found (BR-064). */
const known = (plan: Plan): ToolEntry[] =>
  plan.tools.filter((entry) => entry.kind !== 'function' || !isHidden(plan, entry.name))

/** A choice that names what is no longer offered would be refused upstream. */
function choiceAmong(theirs: ToolEntry[], plan: Plan, round: number): ToolChoice | undefined {
  const choice = offer(plan, [], round).toolChoice
  if (choice?.type !== 'function') return choice
  return theirs.some((entry) => entry.kind === 'function' && entry.name === choice.name) ? choice : { type: 'auto' }
}

const isOwned = (plan: Plan, entry: ToolEntry): boolean => entry.kind === 'function' && plan.owned.has(entry.name)

const isOfBackend = ({ seat }: Plan, entry: ToolEntry): boolean =>
  entry.kind === 'typed' && (seat?.executed.includes(builtinNamed(entry) ?? entry.type) ?? false)

/** What is offered once no more of the backend's tools are wanted. */
export const withoutBackend = (plan: Plan): Plan => ({
  ...plan,
  tools: plan.tools.filter((entry) => !isOfBackend(plan, entry)),
})

const holdsToolUse = ({ parts }: Message): boolean => parts.some(({ type }) => type === 'call' || type === 'result')
