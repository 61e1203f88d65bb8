import type { FinishReason } from '../../conversation/events.ts'
import type { JsonObject, Turn } from '../../conversation/turn.ts'
import type { ItemEnd } from './open-item.ts'

/** What an answer is known by, from its first event to its last. */
export interface Identity {
  id: string
  /** Seconds. */
  createdAt: number
  /** Whether it can be asked for again and gone on from. */
  kept: boolean
  previous: string | undefined
}

/** Members of a request that its answer repeats. */
const REPEATED = [
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'parallel_tool_calls',
  'prompt_cache_key',
  'reasoning',
  'safety_identifier',
  'service_tier',
  'temperature',
  'text',
  'tool_choice',
  'top_p',
  'truncation',
  'user',
]

export type Status = 'in_progress' | ItemEnd

/** The `response` object; members that would be null are left out. */
export function envelope(
  { id, createdAt, kept, previous }: Identity,
  turn: Turn,
  status: Status,
  output: JsonObject[],
): JsonObject {
  const repeated = REPEATED.flatMap((name) => (turn.raw[name] == null ? [] : [[name, turn.raw[name]] as const]))
  const tools = turn.tools.map(({ raw }) => withoutSecrets(raw))
  return {
    id,
    object: 'response',
    created_at: createdAt,
    status,
    model: turn.model,
    output,
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    ...Object.fromEntries(repeated),
    ...(tools.length > 0 && { tools }),
    ...(previous !== undefined && { previous_response_id: previous }),
    store: kept,
  }
}

/** A declaration may hold what lets its provider into a server of the client's; an answer is shown and stored. */
function withoutSecrets({ authorization: _key, headers: _keys, ...rest }: JsonObject): JsonObject {
  return rest
}

/**
 * How an answer ended (BR-026): only a plain end is `completed`. A turn that paused without going on was cut short, and a
 * reason nobody here knows is passed on in the upstream's own word.
 */
export function ending(reason: FinishReason, raw: string | undefined): { status: ItemEnd; why?: string } {
  switch (reason) {
    case 'stop':
    case 'tool_calls':
      return { status: 'completed' }
    case 'length':
    case 'pause':
      return { status: 'incomplete', why: 'max_output_tokens' }
    case 'content_filter':
      return { status: 'incomplete', why: 'content_filter' }
    case 'unknown':
      return { status: 'incomplete', why: raw ?? 'unknown' }
    default:
      return reason satisfies never
  }
}
