import type { Answer } from '../../conversation/collect.ts'

/**
 * `finish_reason` of an answer (BR-026). A turn that paused without going on was cut short. A reason nobody here knows is
 * passed on in the upstream's own word, so that it never looks like a plain end.
 */
export function chatFinish({ reason, raw }: Answer['finish']): string {
  switch (reason) {
    case 'stop':
    case 'length':
    case 'content_filter':
      return reason
    case 'tool_calls':
      return raw === 'function_call' ? raw : reason
    case 'pause':
      return 'length'
    case 'unknown':
      return raw ?? 'stop'
    default:
      return reason satisfies never
  }
}
