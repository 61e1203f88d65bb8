import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '@tollgate/telemetry'
import type { Running } from './service.ts'

export interface LifeOptions {
  log: Log
  /** From the signal until everything has ended, the readiness delay included. Kubernetes' grace must be longer. */
  drainMs: number
  /** Not ready but still serving, so that endpoints and load balancers can stop sending (0 outside Kubernetes). */
  readinessDelayMs: number
}

/** What a process's start is given: where it puts each part it has opened, and the sign that it is no longer wanted. */
export interface Life {
  /** Fires at the first SIGTERM or SIGINT, also while the start is under way. */
  readonly stopping: AbortSignal
  /** Parts are closed one by one in the opposite order, all under one deadline. */
  keep(name: string, part: Running): void
  /** Why no new work can be taken: starting, draining, or what the first part that cannot work says. */
  notReady(): Promise<string | undefined>
}

interface Part {
  name: string
  running: Running
}

/** Parts that are late for the deadline get this much more before the process leaves without them. */
const OVERTIME_MS = 3_000
const READY_MS = 1_000

/**
 * Starts the parts, runs until SIGTERM or SIGINT, stops them and exits: 0 when everything ended in order, 1 when the
 * start failed or something had to be cut off. A second signal exits at once (BR-163). The handlers stand before
 * `start` is called, so that a signal during a slow start is not lost.
 */
export async function runUntilSignal(start: (life: Life) => Promise<void>, options: LifeOptions): Promise<never> {
  const { log, drainMs, readinessDelayMs } = options
  if (readinessDelayMs >= drainMs) throw new Error('the readiness delay must be shorter than the drain limit')
  const parts: Part[] = []
  const stopping = new AbortController()
  let phase: 'starting' | 'running' | 'draining' = 'starting'
  const signalled = onSignals(log, (signal) => stopping.abort(new Error(`${signal} came`)))

  const life: Life = {
    stopping: stopping.signal,
    keep: (name, running) => void parts.push({ name, running }),
    notReady: async () => (phase === 'running' ? firstReason(parts) : phase),
  }
  try {
    await Promise.race([start(life), signalled])
  } catch (error) {
    // a start that gave up because it was told to stop has not failed
    if (!stopping.signal.aborted) {
      const why = `did not start: ${error instanceof Error ? error.message : 'unknown reason'}`
      log.error({ err: error }, why)
      await closeAll(parts, Date.now() + OVERTIME_MS, log)
      // the last line is for whoever looks at a terminal or at why a container ended
      console.error(why)
      process.exit(1)
    }
  }
  if (phase === 'starting' && !stopping.signal.aborted) {
    phase = 'running'
    log.info({ parts: parts.map((part) => part.name) }, 'ready')
  }
  await signalled
  const wasRunning = phase === 'running'
  phase = 'draining'
  const began = Date.now()
  log.info({ drain_ms: drainMs }, 'stopping')
  if (wasRunning && readinessDelayMs > 0) await sleep(readinessDelayMs)
  const inOrder = await closeAll(parts, began + drainMs, log)
  log.info({ ms: Date.now() - began, in_order: inOrder }, 'stopped')
  process.exit(inOrder ? 0 : 1)
}

/** Resolves at the first signal; the second one ends the process where it stands. */
function onSignals(log: Log, first: (signal: NodeJS.Signals) => void): Promise<void> {
  return new Promise((resolve) => {
    let signals = 0
    const take = (signal: NodeJS.Signals) => {
      signals += 1
      if (signals > 1) {
        log.warn({ signal }, 'second signal: leaving without waiting')
        process.exit(1)
      }
      first(signal)
      resolve()
    }
    process.on('SIGTERM', take)
    process.on('SIGINT', take)
    // what is thrown past every handler leaves a state nobody knows: say it as an event, and end
    process.on('uncaughtException', (error) => {
      log.error({ err: error }, 'uncaught: the process ends')
      process.exit(1)
    })
  })
}

async function closeAll(parts: Part[], deadline: number, log: Log): Promise<boolean> {
  let inOrder = true
  let closing: string | undefined
  const late = setTimeout(
    () => {
      log.error({ part: closing, waiting: parts.map((part) => part.name) }, 'the drain limit is over: leaving')
      process.exit(1)
    },
    Math.max(0, deadline - Date.now()) + OVERTIME_MS,
  )
  for (let part = parts.pop(); part; part = parts.pop()) {
    const began = performance.now()
    closing = part.name
    try {
      const ended = await part.running.close(deadline)
      if (!ended) log.warn({ part: part.name }, 'had to be cut off')
      inOrder &&= ended
      log.info({ part: part.name, ms: Math.round(performance.now() - began) }, 'closed')
    } catch (error) {
      inOrder = false
      log.error({ part: part.name, err: error }, 'did not close')
    }
  }
  clearTimeout(late)
  return inOrder
}

/** The first part's reason. One that does not answer in time is not ready either. */
async function firstReason(parts: readonly Part[]): Promise<string | undefined> {
  const reasons = await Promise.all(
    parts.map(async ({ name, running }) => {
      const reason = running.notReady && (await within(running.notReady(), `no answer in ${READY_MS} ms`))
      return reason && `${name}: ${reason}`
    }),
  )
  return reasons.find((reason) => reason !== undefined)
}

/** A question asked again at the next probe: an answer that comes late, or a failure to answer, only counts as a no. */
async function within(answer: Promise<string | undefined>, late: string): Promise<string | undefined> {
  const timer = new AbortController()
  try {
    return await Promise.race([answer, sleep(READY_MS, late, { signal: timer.signal })])
  } catch {
    return 'the check failed'
  } finally {
    timer.abort()
  }
}
