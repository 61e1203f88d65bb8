import type { Turn } from '../conversation/turn.ts'
import type { NestedSearch } from '../tools/tool.ts'
import type { Plan } from './plan.ts'
import { recordCall } from './provider-calls.ts'
import { declarationOfBackend, isMarked } from './provider-tools.ts'
import { type Conversation, rounds } from './rounds.ts'

/** A backend that waits for an echo may search so often for one query. */
const MOST_ROUNDS = 4

/**
 * The search of a backend that takes its tool only alone: one more completion at the same seat, with the query and nothing
 * else of the conversation (PE-38). Its rounds are metered with the request's, and end with it (PE-41).
 */
export function nestedSearch(outer: Conversation): NestedSearch | undefined {
  const { provider, plan, tally, at } = outer
  const { seat } = plan
  const name = seat?.delegated
  if (seat === undefined || name === undefined) return undefined
  return {
    name,
    async search(query) {
      let text = ''
      let textBlocks = new Set<number>()
      for await (const event of rounds({
        ...outer,
        plan: nestedPlan(query, { ...plan, seat: { ...seat, executed: [name] } }),
      })) {
        if (event.type === 'open' && event.block.kind === 'text') textBlocks = textBlocks.add(event.index)
        if (event.type === 'delta' && textBlocks.has(event.index)) text += event.text
      }
      // a tool that waits for an echo was recorded with its call
      if (!isMarked(name)) await recordCall(tally, seat, provider, name, undefined, at)
      return text
    },
  }
}

function nestedPlan(query: string, { turn: outer, seat }: Plan): Plan {
  const said = { role: 'user', content: query }
  const messages: Turn['messages'] = [
    { role: 'user', parts: [{ type: 'text', text: query }], raw: { dialect: 'chat', value: said } },
  ]
  const tools = (seat?.executed ?? []).map(declarationOfBackend)
  const turn: Turn = {
    dialect: 'chat',
    model: outer.model,
    stream: false,
    includeUsage: true,
    messages,
    tools,
    toolChoice: undefined,
    parallelToolCalls: undefined,
    maxOutputTokens: undefined,
    temperature: undefined,
    topP: undefined,
    stop: undefined,
    user: undefined,
    maxToolIterations: MOST_ROUNDS,
    toolsHeader: undefined,
    raw: { model: outer.model, messages: [said], tools: tools.map(({ raw }) => raw) },
    bodyCharacters: query.length,
  }
  return { owned: new Map(), turn, messages, hints: [], tools, toolChoice: undefined, seat }
}
