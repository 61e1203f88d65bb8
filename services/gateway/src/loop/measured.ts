import { SpanStatusCode, trace } from '@opentelemetry/api'
import { counter, histogram, type Log } from '@tollgate/telemetry'
import { tools } from '../tools/registry.ts'
import type { ToolResult } from '../tools/tool.ts'

const tracer = trace.getTracer('@tollgate/gateway')
const names = tools.map(({ name }) => name)
const callsTotal = counter('tool_calls_total', 'Calls of tools that run here', {
  tool: names,
  label: ['instance', 'builtin', 'org', 'otari'],
  outcome: ['ok', 'error'],
})
const seconds = histogram('tool_seconds', 'Time a call of a tool that runs here took', { tool: names })

type Measured = Pick<ToolResult, 'label' | 'cause'> & { outcome: { isError: boolean } }

/** Runs one call of a tool as traces, metrics and the log know it, whoever asked for it. */
export function measured<R extends Measured>(tool: string, id: string, log: Log, run: () => Promise<R>): Promise<R> {
  const attributes = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': tool,
    'gen_ai.tool.call.id': id.slice(0, 128),
    'gen_ai.tool.type': 'function',
  }
  return tracer.startActiveSpan(`tool ${tool}`, { attributes }, async (span) => {
    const began = performance.now()
    try {
      const result = await run()
      if (result.outcome.isError) span.setStatus({ code: SpanStatusCode.ERROR })
      if (result.cause !== undefined) log.warn({ tool, err: result.cause }, 'a tool call was not answered')
      const outcome = result.outcome.isError ? 'error' : 'ok'
      callsTotal.add(1, { tool, label: labelKind(result.label), outcome })
      return result
    } finally {
      seconds.record((performance.now() - began) / 1_000, { tool })
      span.end()
    }
  })
}

/** The kind of a label; the rest of it names an instance, and so has no bound. */
function labelKind(label: string): string {
  const [kind = ''] = label.split(':', 1)
  return kind === 'builtin' || kind === 'org' || kind === 'otari' ? kind : 'instance'
}
