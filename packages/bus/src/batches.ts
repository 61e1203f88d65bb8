import { type Context, ROOT_CONTEXT } from '@opentelemetry/api'
import type { Log } from '@tollgate/telemetry'
import { inContext, linksTo, startStep } from './tracing.ts'

export interface Offered<E> {
  event: E
  /** Where in which trace it was recorded. */
  from: Context
}

/**
 * Hands events to a consumer together and, when that fails, one at a time, so that one bad event does not hold up the
 * others. Resolves with what each one failed with, undefined where it was taken.
 */
export async function offer<E>(
  subject: string,
  batch: Offered<E>[],
  handler: (events: E[]) => Promise<void>,
  log: Log,
): Promise<unknown[]> {
  const failed = await attempt(subject, batch, handler, log)
  if (failed === undefined) return batch.map(() => undefined)
  if (batch.length === 1) return [failed]
  const failures: unknown[] = []
  for (const offered of batch) failures.push(await attempt(subject, [offered], handler, log))
  return failures
}

/** What it failed with. A thrown `undefined` is a failure too. */
async function attempt<E>(
  subject: string,
  batch: Offered<E>[],
  handler: (events: E[]) => Promise<void>,
  log: Log,
): Promise<unknown> {
  const from = batch.map((offered) => offered.from)
  const only = from.length === 1 ? from[0] : undefined
  const step = startStep('consume', subject, only ?? ROOT_CONTEXT, only ? [] : linksTo(from))
  try {
    await inContext(step, async () => handler(batch.map(({ event }) => event)))
    step.end()
    return undefined
  } catch (err) {
    const failure = err ?? new Error('a consumer threw nothing')
    step.end(failure)
    log.error({ err: failure, subject, events: batch.length }, 'recorded events were not taken; they are offered again')
    return failure
  }
}
