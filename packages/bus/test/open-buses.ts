import type { Fault } from '@tollgate/contracts'
import { freshPrefix } from '@tollgate/testing'
import { inject, onTestFinished } from 'vitest'
import { type Bus, type CallContext, memoryBus, type NatsBusOptions, natsBus } from '../src/index.ts'
import { listLog } from './contracts.ts'

export * from './contracts.ts'

export const kinds = ['memory', 'nats'] as const
export type Kind = (typeof kinds)[number]

export type Join = (name: string, options?: Partial<NatsBusOptions>) => Promise<Bus>

/** The buses of one test: in memory they are all one. Whatever is still open when the test ends is closed. */
export function openSystem(kind: Kind, shared: Partial<NatsBusOptions> = {}): Join {
  const prefix = freshPrefix()
  const { log } = listLog()
  const memory = kind === 'memory' ? memoryBus({ log: shared.log ?? log }) : undefined
  if (memory) closeLater(memory)
  return async (name, options = {}) => {
    if (memory) return memory
    const bus = await natsBus({ servers: inject('natsUrl'), log, prefix, name, ...shared, ...options })
    closeLater(bus)
    return bus
  }
}

/** One that serves and one that calls; in memory they are the same. */
export async function openPair(
  kind: Kind,
  shared: Partial<NatsBusOptions> = {},
): Promise<{ worker: Bus; client: Bus }> {
  const join = openSystem(kind, shared)
  return { worker: await join('worker'), client: await join('client') }
}

function closeLater(bus: Bus): void {
  onTestFinished(async () => {
    await bus.drain(Date.now())
  })
}

export const within = (ms: number): { deadline: number } => ({ deadline: Date.now() + ms })

export const echo = async ({ text, times }: { text: string; times: number }) => ({ text: text.repeat(times) })

/** A handler that works until it is told to stop, and what it was told. */
export function untilStopped() {
  const seen: { started: string[]; stopped: string[] } = { started: [], stopped: [] }
  const handler = ({ text }: { text: string }, { signal }: Pick<CallContext, 'signal'>) => {
    seen.started.push(text)
    return new Promise<never>((_, reject) => {
      const stop = () => {
        seen.stopped.push((signal.reason as Fault).failure)
        reject(signal.reason)
      }
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop)
    })
  }
  return { seen, handler }
}

/** A promise that a test resolves when it wants work to go on. */
export function gate(): { promise: Promise<void>; resolve(): void } {
  let resolve!: () => void
  const promise = new Promise<void>((open) => {
    resolve = open
  })
  return { promise, resolve }
}
