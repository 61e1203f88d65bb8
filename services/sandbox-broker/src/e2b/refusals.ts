import { openDeadline, type TrustedAnswer, type TrustedStream } from '@tollgate/http'
import type { CallLimits, Refusal } from '../provider.ts'

type Failed = Extract<TrustedAnswer | TrustedStream, { status: 'failed' }>
type Answered = { httpStatus: number; header(name: string): string | undefined }

const because = (reason: 'unreachable' | 'timeout' | 'refused' | 'lost'): Refusal => ({ status: 'failed', reason })
export const unreachable = because('unreachable')
export const timedOut = because('timeout')
export const refused = because('refused')
export const lost = because('lost')

/** A proxy in front of every sandbox answers 502 for one that is gone; in front of the API, 502 says nothing of any. */
export function refusalOfAnswer(answer: Failed | Answered, of: 'api' | 'sandbox'): Refusal {
  if ('tag' in answer && answer.tag === 'timeout') return timedOut
  const { httpStatus } = answer
  if (httpStatus === undefined) return unreachable
  if (httpStatus === 404) return lost
  if (httpStatus === 502) return of === 'sandbox' ? lost : unreachable
  if (httpStatus !== 429 && httpStatus !== 503) return refused
  const retryAfter = 'header' in answer ? answer.header('retry-after') : undefined
  const seconds = retryAfter !== undefined && /^[0-9]{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined
  return { status: 'failed', reason: 'busy', ...(seconds === undefined ? {} : { retryAfterSeconds: seconds }) }
}

interface SdkCall<T> {
  limits: CallLimits
  patienceMs: number
  /** Whether the sandbox is there, when an error leaves that open; throws when nobody says. */
  isRunning(signal: AbortSignal): Promise<boolean>
  work(signal: AbortSignal): Promise<T>
}

/**
 * Calls the vendor's client under our own clock: its timeouts are off. It names one error for a sandbox that is gone, a
 * busy one and its own impatience, so that is asked after before anything is called lost.
 */
export async function viaSdk<T>(call: SdkCall<T>): Promise<{ status: 'ok'; value: T } | Refusal> {
  const { limits, patienceMs, isRunning, work } = call
  const limit = openDeadline(Math.min(limits.deadline, Date.now() + patienceMs), limits.signal)
  try {
    limit.signal.throwIfAborted()
    return { status: 'ok', value: await work(limit.signal) }
  } catch (thrown) {
    limits.signal.throwIfAborted()
    if (limit.expired) return timedOut
    const refusal = refusalOfError(thrown)
    if (refusal) return refusal
    const running = await isRunning(limit.signal).catch(() => undefined) // what does not answer is not known to be gone
    limits.signal.throwIfAborted()
    if (running === undefined) return unreachable
    if (!running) return lost
    return thrown instanceof Error && thrown.name === 'SandboxError' ? refused : unreachable
  } finally {
    limit.end()
  }
}

const named: Record<string, Refusal> = {
  NotFoundError: lost,
  FileNotFoundError: lost,
  RateLimitError: { status: 'failed', reason: 'busy' },
  ServiceBusyError: { status: 'failed', reason: 'busy' },
  AuthenticationError: refused,
  InvalidArgumentError: refused,
  NotEnoughSpaceError: refused,
}

/**
 * By name: an error of the client may come from another copy of its module. Undefined where its name does not tell, as that
 * of a sandbox not found, which is the client's guess about a busy agent as well.
 */
function refusalOfError(thrown: unknown): Refusal | undefined {
  if (!(thrown instanceof Error)) throw thrown
  // of the API, with its status; of the agent it may be anything, a broken connection too
  if (thrown.name === 'SandboxError' && 'statusCode' in thrown && thrown.statusCode !== undefined)
    return thrown.statusCode === 404 ? lost : refused
  return Object.hasOwn(named, thrown.name) ? named[thrown.name] : undefined
}
