import { randomUUID } from 'node:crypto'
import { histogram } from '@tollgate/telemetry'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { type Call, type Caller, SandboxLost } from '../drivers/driver.ts'
import { edit, editorInput } from '../editor.ts'
import { ofCall, ofEditor, type ProgramResult } from '../result.ts'
import type { Session } from '../sessions.ts'
import type { AppNeeds } from './app.ts'
import { callerOf } from './caller.ts'
import { type EventStream, openEventStream, wantsEvents } from './event-stream.ts'
import { failureOf } from './failure.ts'
import { findSession } from './find.ts'
import { HttpRefusal } from './refusal.ts'

const tools = ['code_execution', 'bash_code_execution', 'text_editor_code_execution'] as const
type Tool = (typeof tools)[number]

/** CP-07. The kind is looked at first, since an unknown one has a status of its own. */
const call = z.object({
  tool: z.string(),
  input: z.unknown().optional(),
  timeout_seconds: z.int().min(1).nullish(),
  tool_use_id: z.string().max(1_024).nullish(),
})
const code = z.object({ code: z.string().min(1) })
const command = z.object({ command: z.string().min(1) })

const execSeconds = histogram('sandbox_exec_seconds', 'Calls in sessions of the bundled sandbox', {
  outcome: ['ok', 'failed', 'time', 'memory', 'processes', 'disk', 'cancelled', 'lost', 'refused'],
})

export function execRoute(app: FastifyInstance, { sessions, settings, log }: AppNeeds): void {
  app.post('/sessions/:session/exec', async (request, reply) => {
    const { tool, input, timeout_seconds, tool_use_id } = call.parse(request.body)
    if (!isTool(tool)) throw new HttpRefusal(400, 'unknown tool kind')
    const session = findSession(sessions, request)
    const timeoutSeconds = Math.min(timeout_seconds ?? settings.defaultExecSeconds, settings.maxExecSeconds)
    const events = wantsEvents(request) ? openEventStream(reply, settings.keepAliveSeconds * 1_000) : undefined
    const began = performance.now()
    let outcome = 'refused'
    try {
      const run = planned(tool, input, session, { timeoutSeconds, caller: callerOf(reply), events })
      const { outcome: how, content } = await session.inTurn(run)
      outcome = how
      const id = tool_use_id ?? `srvtoolu_${randomUUID().replaceAll('-', '').slice(0, 24)}`
      const body = {
        tool_use_id: id,
        execution_time_ms: Math.round(performance.now() - began),
        result_block: { type: `${tool}_tool_result`, tool_use_id: id, content },
      }
      return events ? events.result(body, content) : body
    } catch (thrown) {
      if (thrown instanceof SandboxLost) outcome = 'lost'
      if (!events?.begun) throw thrown
      const failure = failureOf(thrown)
      if (failure.status === 500) log.error({ err: thrown }, 'a request failed')
      events.error(failure)
      return undefined
    } finally {
      events?.stop()
      const ms = performance.now() - began
      execSeconds.record(ms / 1_000, { outcome })
      log.debug({ session: session.id, tool, outcome, ms: Math.round(ms) }, 'call ended')
    }
  })
}

const isTool = (name: string): name is Tool => (tools as readonly string[]).includes(name)

/** The input is checked at once, the work is done in turn. */
function planned(
  tool: Tool,
  input: unknown,
  session: Session,
  { timeoutSeconds, caller, events }: { timeoutSeconds: number; caller: Caller; events: EventStream | undefined },
): () => Promise<ProgramResult> {
  const runIt = (kind: Call['kind'], text: string) => async () => {
    if (caller.hasLeft) throw new HttpRefusal(422, 'the client left')
    events?.begin()
    const hears = events ? { onOutput: events.output } : {}
    return ofCall(await session.sandbox.run({ kind, text, timeoutSeconds, ...hears }, caller), timeoutSeconds)
  }
  switch (tool) {
    case 'code_execution':
      return runIt('python', code.parse(input).code)
    case 'bash_code_execution':
      return runIt('shell', command.parse(input).command)
    case 'text_editor_code_execution': {
      const parsed = editorInput.parse(input)
      return async () => ofEditor(await edit(session, parsed))
    }
    default:
      return tool satisfies never
  }
}
