import { setTimeout as sleep } from 'node:timers/promises'
import type { FileReference } from '@tollgate/contracts'
import type { FileStore } from '@tollgate/files'
import type { Log } from '@tollgate/telemetry'
import type { CallLimits } from '../models/provider.ts'
import type { FileCopy, Sendable } from '../models/provider-files.ts'
import { copied, copyThere, type FilesProvider } from './copy-there.ts'

/** A removal is tried again after so long. */
const RETRY_MS = [1_000, 5_000]
const REMOVE_MS = 10_000
/** Copies that wait to be removed; what is over ends by itself within the hour. */
const MOST_REMOVALS = 1_000

interface Made {
  copy: FileCopy
  provider: FilesProvider
}

/** The copies of attachments at providers, of all requests: made for an attempt, removed when the request is over. */
export interface ProviderCopies {
  of(request: string): RequestCopies
  /** Waits for removals that are under way, and tries none again. */
  close(deadline: number): Promise<void>
}

export interface RequestCopies {
  /** What is sent, with a copy of each file where the provider's code finds it. */
  attach<S extends Sendable>(
    sent: S,
    files: readonly FileReference[],
    provider: FilesProvider,
    at: CallLimits,
  ): Promise<S>
  /** The request is over, however it ended. Nobody waits for it. */
  remove(): void
}

export function openProviderCopies({ store, log }: { store: FileStore; log: Log }): ProviderCopies {
  const running = new Set<Promise<void>>()
  /** No removal is tried again; those under way end as well. */
  const [closing, cut] = [new AbortController(), new AbortController()]

  return {
    of(request) {
      const made: Made[] = []
      let over = false
      return {
        async attach(sent, files, provider, at) {
          const note = (work: Promise<FileCopy>) =>
            keep(
              work.then(
                (copy) => (over ? removed(request, provider, copy) : void made.push({ copy, provider })),
                () => undefined,
              ),
            )
          const copies = await copyThere({ store, provider, sent, note }, files, at)
          return provider.files.attach(sent, copies)
        },
        remove() {
          over = true
          for (const { copy, provider } of made.splice(0)) {
            if (running.size < MOST_REMOVALS) keep(removed(request, provider, copy))
            else leave(request, provider, copy, new Error('too many copies wait to be removed'))
          }
        },
      }
    },
    async close(deadline) {
      closing.abort()
      const timer = setTimeout(() => cut.abort(), Math.max(0, deadline - Date.now()))
      await Promise.all(running)
      clearTimeout(timer)
    },
  }

  function keep(work: Promise<void>): void {
    const whole = work.finally(() => running.delete(whole))
    running.add(whole)
  }

  async function removed(request: string, provider: FilesProvider, copy: FileCopy): Promise<void> {
    for (const waitMs of [...RETRY_MS, undefined]) {
      try {
        // not the request's signal: that has fired, where its client left
        await provider.files.remove(copy, { signal: cut.signal, deadline: Date.now() + REMOVE_MS })
        copied.add(1, { step: 'remove', outcome: 'ok' })
        return
      } catch (thrown) {
        const again = waitMs !== undefined && !closing.signal.aborted
        if (!again || !(await slept(waitMs))) return leave(request, provider, copy, thrown)
      }
    }
  }

  function slept(ms: number): Promise<boolean> {
    return sleep(ms, true, { signal: closing.signal, ref: false }).catch(() => false)
  }

  function leave(request: string, { name }: FilesProvider, { id }: FileCopy, err: unknown): void {
    copied.add(1, { step: 'remove', outcome: 'failed' })
    log.warn(
      { request, provider: name, copy: id, err },
      'a copy of a file is left at a provider until it ends by itself',
    )
  }
}
