import { Fault } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import { isPdf } from './content-type.ts'
import { type Host, type HostEnd, openHost } from './host-process.ts'
import { defaultExtractLimits, type ExtractedResult, type ExtractJob, type ExtractLimits } from './job.ts'

export interface ExtractPool {
  /** Reads a body, or says why it could not be. Rejects when `signal` fires, or `unavailable` when too many are waiting. */
  run(job: Omit<ExtractJob, 'limits'>, signal: AbortSignal): Promise<ExtractedResult>
  waiting(): number
  close(): void
}

export interface ExtractPoolOptions {
  /** Processes of one thread each. */
  threads: number
  /** Bodies that may wait for one. */
  maxWaiting: number
  memoryBytes: number
  limits?: Partial<ExtractLimits>
  log: Log
  onRestart: (why: HostEnd) => void
}

const START_MS = 30_000

/** Bodies are read in processes that can be killed: whatever one does, it ends in time, and only its own call fails (F-26). */
export function openExtractPool(options: ExtractPoolOptions): ExtractPool {
  const limits = { ...defaultExtractLimits, ...options.limits }
  const free: Host[] = []
  const waiting: { take(host: Host): void }[] = []
  const hosts = Array.from({ length: options.threads }, () =>
    openHost({
      memoryBytes: options.memoryBytes,
      startMs: START_MS,
      onEnd(why) {
        if (why === 'closed') return
        options.onRestart(why)
        options.log.warn({ why }, 'an extracting process was replaced')
      },
    }),
  )
  free.push(...hosts)

  const acquire = (signal: AbortSignal): Promise<Host> => {
    const host = free.pop()
    if (host) return Promise.resolve(host)
    if (waiting.length >= options.maxWaiting) throw new Fault('unavailable', 'too many pages are waiting to be read')
    return new Promise((take, reject) => {
      const leave = () => {
        waiting.splice(waiting.indexOf(place), 1)
        reject(signal.reason)
      }
      const place = {
        take(next: Host) {
          signal.removeEventListener('abort', leave)
          take(next)
        },
      }
      waiting.push(place)
      signal.addEventListener('abort', leave, { once: true })
    })
  }
  const release = (host: Host): void => {
    const next = waiting.shift()
    if (next) next.take(host)
    else free.push(host)
  }

  return {
    async run(job, signal) {
      signal.throwIfAborted()
      const host = await acquire(signal)
      try {
        return await host.read(
          { ...job, limits },
          isPdf(job.contentType, job.bytes) ? limits.pdfMs : limits.htmlMs,
          signal,
        )
      } finally {
        release(host)
      }
    },
    waiting: () => waiting.length,
    close() {
      for (const host of hosts) host.close()
    },
  }
}
