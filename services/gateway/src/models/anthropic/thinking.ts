import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject } from '../../conversation/turn.ts'

/**
 * With manual thinking the vendor wants a last turn that calls tools to begin with its thinking. Where that is lost (a
 * Chat history has none, and unsigned thinking is not given back), thinking rests until the tool turn is over.
 */
export function thinkingFor(messages: readonly JsonObject[], thinking: Json | undefined): Json | undefined {
  const content = messages.findLast(({ role }) => role === 'assistant')?.content
  const last = Array.isArray(content) ? content.filter(isObject) : []
  const unthought = last.some(({ type }) => type === 'tool_use') && !/thinking$/.test(String(last[0]?.type))
  return unthought && budgetOf(thinking) > 0 ? undefined : thinking
}

export const budgetOf = (thinking: Json | undefined): number =>
  isObject(thinking) && typeof thinking.budget_tokens === 'number' ? thinking.budget_tokens : 0
