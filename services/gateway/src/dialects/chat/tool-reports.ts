import type { ShownFailure, ToolActivity, ToolOutcome } from '../../conversation/events.ts'
import type { JsonObject } from '../../conversation/turn.ts'

/** An item of `otari_tool_calls`; undefined for what a Chat client is told nothing of. */
export function toolReport({ call, outcome }: ToolActivity): JsonObject | undefined {
  const shown = outcome?.shown
  switch (shown?.kind) {
    case 'web_search':
      return report(call.id, shown, { query: shown.query }, { sources: shown.sources.map((source) => ({ ...source })) })
    case 'web_fetch':
      return report(call.id, shown, { url: shown.url }, {})
    case 'provider_tool': {
      const { name, resultTokens } = shown
      const status = shown.failure ? 'failed' : 'completed'
      return {
        id: call.id,
        name,
        executed_by: 'provider',
        status,
        ...(resultTokens !== undefined && { result_tokens: resultTokens }),
      }
    }
    case 'code_execution':
    case 'mcp':
    case 'tool_search':
    case undefined:
      return undefined
    default:
      return shown satisfies never
  }
}

function report(
  id: string,
  { kind, failure }: { kind: string; failure?: ShownFailure },
  asked: JsonObject,
  found: JsonObject,
): JsonObject {
  if (!failure) return { id, type: kind, status: 'completed', ...asked, ...found }
  const { tag, httpStatus } = failure
  return {
    id,
    type: kind,
    status: 'failed',
    ...asked,
    error: { tag, ...(httpStatus !== undefined && { http_status: httpStatus }) },
  }
}

/** The playground's `otari_tool_activity`: every call as it starts and as it ends. */
export function toolActivity({ phase, call, outcome }: ToolActivity): JsonObject {
  if (phase === 'started') return { id: call.id, phase: 'start', tool: call.tool, input: call.input }
  return {
    id: call.id,
    phase: 'end',
    tool: call.tool,
    status: failed(outcome) ? 'failed' : 'completed',
    result: outcome?.text ?? '',
  }
}

const failed = (outcome: ToolOutcome | undefined): boolean => outcome === undefined || outcome.isError
