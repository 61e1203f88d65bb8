import type { TrustedClient } from '@tollgate/http'
import type { Log } from '@tollgate/telemetry'
import { z } from 'zod'
import type { CallLimits, ExecCall, Execution, Refusal } from '../provider.ts'
import { type E2bSettings, INTERPRETER_PORT, interpreterHeaders, sandboxUrl } from './endpoints.ts'
import { type Handle, type Leases, parseJson } from './leases.ts'
import { LineTooLong, readLines } from './lines.ts'
import { type Figure, openNotebook, VARIABLES_LOST } from './notebook.ts'
import { lost, refusalOfAnswer, refused, timedOut, unreachable } from './refusals.ts'

interface InterpreterNeeds {
  settings: E2bSettings
  http: TrustedClient
  leases: Leases
  log: Log
}

/** What came of code that was to end; `unknown`: nobody answered, and its sandbox ends by its own clock. */
type Stopped = 'restarted' | 'killed' | 'unknown'

export type Ran = { result: Execution; figures: Figure[] } | Refusal

/** The grant counts from when we send it; this much is for the way there and back. */
const TRANSPORT_MS = 1_000
const CALL_MS = 20_000
/** A timer may fire this much before its time. */
const EARLY_MS = 20
/** One picture in base64, and the rest of its line. */
const MAX_LINE_BYTES = 16 * 1024 * 1024
/** What the shell's `timeout` ends with, too. */
const TIMED_OUT = 124

const context = z.object({ id: z.string().regex(/^[\w-]{1,64}$/) })

/**
 * Runs Python in a sandbox's interpreter. Its stream is read here and not by the vendor's client, which decodes each
 * chunk by itself and so breaks characters, cannot be cancelled, holds whatever a program prints, and starts its timeout
 * only once the answer has begun.
 */
export function openInterpreter({ settings, http, leases, log }: InterpreterNeeds) {
  /** Contexts that are stopped after their call has ended: the caller is gone, its code must not go on. */
  const stopping = new Map<string, Promise<Stopped>>()

  const at = (handle: Handle, path: string) => sandboxUrl(settings, handle.id, INTERPRETER_PORT, handle.domain) + path

  const post = (handle: Handle, path: string, json: object, { signal, deadline }: CallLimits) =>
    http.send({
      method: 'POST',
      url: at(handle, path),
      json,
      headers: interpreterHeaders(handle, 'contexts'),
      signal,
      deadline: Math.min(deadline, Date.now() + CALL_MS),
    })

  /** The code may still run: a timeout is only ours. A restart ends it; where that fails, the sandbox goes with it. */
  async function stop(handle: Handle, contextId: string): Promise<Stopped> {
    const limits = { signal: new AbortController().signal, deadline: Date.now() + CALL_MS }
    const restarted = await post(handle, `/contexts/${contextId}/restart`, {}, limits)
    if (restarted.status === 'answered' && restarted.httpStatus >= 200 && restarted.httpStatus < 300) return 'restarted'
    const killed = await leases.kill(handle.id, { ...limits, deadline: Date.now() + CALL_MS })
    log.warn(
      { killed: killed.status === 'ok' },
      'code that ran too long could not be stopped: its sandbox was given up',
    )
    return killed.status === 'ok' ? 'killed' : 'unknown'
  }

  function stopLater(handle: Handle, contextId: string): void {
    const ended = stop(handle, contextId).catch((err: unknown) => {
      log.warn({ err }, 'cancelled code could not be stopped')
      return 'unknown' as const
    })
    stopping.set(contextId, ended)
    void ended.finally(() => stopping.delete(contextId))
  }

  return {
    async createContext(
      handle: Handle,
      cwd: string,
      limits: CallLimits,
    ): Promise<{ status: 'ok'; id: string } | Refusal> {
      const answer = await post(handle, '/contexts', { language: 'python', cwd }, limits)
      if (answer.status === 'failed' || answer.httpStatus < 200 || answer.httpStatus >= 300)
        return refusalOfAnswer(answer, 'sandbox')
      const read = context.safeParse(parseJson(answer.bytes))
      return read.success ? { status: 'ok', id: read.data.id } : refused
    },

    async run(handle: Handle, contextId: string, call: ExecCall, limits: CallLimits): Promise<Ran> {
      // a call would be answered by the code before it, or by nobody
      const before = await stopping.get(contextId)
      limits.signal.throwIfAborted()
      if (before === 'killed') return lost
      if (before === 'unknown') return unreachable
      const granted = Date.now() + call.timeoutSeconds * 1_000 + TRANSPORT_MS
      const deadline = Math.min(limits.deadline, granted)
      const notebook = openNotebook(call.onOutput)

      const ended = async (): Promise<Ran> => {
        const stopped = await stop(handle, contextId)
        if (stopped === 'killed') return lost
        if (stopped === 'unknown') return unreachable
        if (deadline < granted) return timedOut
        notebook.note(`timed out after ${call.timeoutSeconds} s: ${VARIABLES_LOST}`)
        return { result: { ...notebook.result(), returnCode: TIMED_OUT, limit: 'time', files: [] }, figures: [] }
      }
      const brokenOff = async (): Promise<Ran> => {
        stopLater(handle, contextId)
        const asked = await leases.use(handle, limits, CALL_MS, (signal) => handle.sandbox.isRunning({ signal }))
        return asked.status === 'ok' && !asked.value ? lost : unreachable
      }

      try {
        const answer = await http.stream({
          method: 'POST',
          url: at(handle, '/execute'),
          json: { code: call.code, context_id: contextId },
          headers: { ...interpreterHeaders(handle, 'execute'), 'accept-encoding': 'identity' },
          signal: limits.signal,
          deadline,
        })
        if (answer.status === 'failed') {
          if (answer.tag === 'timeout') return await ended()
          if (answer.httpStatus === undefined) return await brokenOff()
          return refusalOfAnswer(answer, 'sandbox')
        }
        for await (const line of readLines(answer.body, MAX_LINE_BYTES)) {
          if (notebook.take(line)) continue
          stopLater(handle, contextId)
          return refused
        }
      } catch (thrown) {
        if (limits.signal.aborted) stopLater(handle, contextId)
        limits.signal.throwIfAborted()
        if (thrown instanceof LineTooLong) {
          stopLater(handle, contextId)
          return refused
        }
        return Date.now() >= deadline - EARLY_MS ? await ended() : await brokenOff()
      }
      if (!notebook.isSound) return refused
      return { result: { ...notebook.result(), files: [] }, figures: notebook.figures }
    },

    close: async () => void (await Promise.all(stopping.values())),
  }
}
