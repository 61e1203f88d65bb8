import { Fault } from '@tollgate/contracts'
import type { Json } from '../conversation/turn.ts'

/** Members of a Chat body that the turn itself holds. */
export const membersInTheTurn: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'top_p',
  'stop',
  'user',
])

const isEmpty = (value: Json): boolean => value !== null && typeof value === 'object' && Object.keys(value).length === 0

/** Members that other wires have no equivalent for, accepted while they ask for nothing. */
const ASKS_FOR_NOTHING: Record<string, (value: Json) => boolean> = {
  audio: () => false,
  frequency_penalty: (value) => value === 0,
  function_call: (value) => value === 'none' || value === 'auto',
  functions: isEmpty,
  logit_bias: isEmpty,
  logprobs: (value) => value === false,
  modalities: (value) => JSON.stringify(value) === '["text"]',
  moderation: () => false,
  n: (value) => value === 1,
  presence_penalty: (value) => value === 0,
  top_logprobs: (value) => value === 0,
  verbosity: (value) => value === 'medium',
  web_search_options: () => false,
}

export const asksForNothing = (name: string, value: Json): boolean =>
  Object.hasOwn(ASKS_FOR_NOTHING, name) && (ASKS_FOR_NOTHING[name]?.(value) ?? false)

export const notCarried = (name: string, unless = ''): Fault =>
  new Fault('invalid_request', `'${name.slice(0, 64)}' cannot be sent to this model's provider${unless}`)

/** How members of Chat that an error may name are called in a Messages body. */
export const messagesNames: ReadonlyMap<string, string> = new Map([
  ['response_format', 'output_config.format'],
  ['reasoning_effort', 'output_config.effort'],
])
