import type { Log } from '@tollgate/telemetry'
import { isPdf } from './content-type.ts'
import { type HostEnd, openHost } from './host-process.ts'
import { openHostQueue } from './host-queue.ts'
import { defaultExtractLimits, type ExtractedResult, type ExtractJob, type ExtractLimits, extracted } from './job.ts'

/** A body to be read, within the pool's limits; `textBytes` stands in for its limit of text. */
export type PoolJob = Omit<ExtractJob, 'limits'> & { textBytes?: number }

export interface ExtractPool {
  /** Reads a body, or says why it could not be. Rejects when `signal` fires, or `unavailable` when too many are waiting. */
  run(job: PoolJob, signal: AbortSignal): Promise<ExtractedResult>
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
  const hosts = Array.from({ length: options.threads }, () =>
    openHost<ExtractJob, ExtractedResult>({
      script: new URL('./host.ts', import.meta.url),
      parse: (result) => extracted.safeParse(result).data,
      failed: (failure) => ({ status: 'failed', failure }),
      memoryBytes: options.memoryBytes,
      startMs: START_MS,
      onEnd(why) {
        if (why === 'closed') return
        options.onRestart(why)
        options.log.warn({ why }, 'an extracting process was replaced')
      },
    }),
  )
  const queue = openHostQueue(hosts, options.maxWaiting)
  return {
    run({ textBytes = limits.textBytes, ...job }, signal) {
      const ms = isPdf(job.contentType, job.bytes) ? limits.pdfMs : limits.htmlMs
      return queue.use(signal, (host) => host.read({ ...job, limits: { ...limits, textBytes } }, ms, signal))
    },
    waiting: queue.waiting,
    close() {
      for (const host of hosts) host.close()
    },
  }
}
