import type { Answer } from '../../conversation/collect.ts'

/**
 * `stop_reason` of an answer (BR-026). A reason nobody here knows is passed on in the upstream's own word, so that it
 * never looks like a plain end.
 */
export function messagesFinish({ reason, raw }: Answer['finish']): string {
  switch (reason) {
    case 'stop':
      return raw === 'stop_sequence' ? raw : 'end_turn'
    case 'tool_calls':
      return 'tool_use'
    case 'length':
      return raw === 'model_context_window_exceeded' ? raw : 'max_tokens'
    case 'content_filter':
      return 'refusal'
    case 'pause':
      return 'pause_turn'
    case 'unknown':
      return raw ?? 'end_turn'
    default:
      return reason satisfies never
  }
}
