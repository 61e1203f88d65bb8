import type { NestedSearch } from '../tools/tool.ts'
import { plainTurn } from './plain-turn.ts'
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
      const texts = new Set<number>()
      const alone = nestedPlan(query, { ...plan, seat: { ...seat, executed: [name] } })
      await rounds({ ...outer, plan: alone }, (event) => {
        if (event.type === 'open' && event.block.kind === 'text') texts.add(event.index)
        if (event.type === 'delta' && texts.has(event.index)) text += event.text
        return undefined
      })
      // a tool that waits for an echo was recorded with its call
      if (!isMarked(name)) await recordCall(tally, seat, provider, name, undefined, at)
      return text
    },
  }
}

function nestedPlan(query: string, { turn: outer, seat }: Plan): Plan {
  const tools = (seat?.executed ?? []).map(declarationOfBackend)
  const turn = plainTurn(outer.model, query, tools, MOST_ROUNDS)
  return { owned: new Map(), turn, messages: turn.messages, hints: [], tools, toolChoice: undefined, seat }
}
