import type { Log } from '@tollgate/telemetry'
import { type Host, type HostEnd, openHost } from '../extract/host-process.ts'
import { type HostQueue, openHostQueue } from '../extract/host-queue.ts'
import { type ImageJob, type Prepared, prepared } from './job.ts'

export interface ImagePool {
  /** Rejects when `signal` fires, or `unavailable` when too many are waiting. */
  run(job: Omit<ImageJob, 'ms' | 'maxPixels'>, signal: AbortSignal): Promise<Prepared>
  close(): void
}

export interface ImagePoolOptions {
  /** Images that may wait for their turn. */
  maxWaiting: number
  memoryBytes: number
  /** Milliseconds of work on one image. */
  imageMs: number
  log: Log
  onRestart: (why: HostEnd) => void
}

const START_MS = 30_000
const MAX_PIXELS = 64_000_000
/** A worker that is asked for images now and then does not hold the memory for it in between. */
const IDLE_MS = 60_000

/** Images are decoded in one process beside the service, started when the first one comes. */
export function openImagePool(options: ImagePoolOptions): ImagePool {
  let open: { host: Host<ImageJob, Prepared>; queue: HostQueue<Host<ImageJob, Prepared>> } | undefined
  let idle: NodeJS.Timeout | undefined
  let running = 0

  const start = () => {
    const host = openHost<ImageJob, Prepared>({
      script: new URL('./host.ts', import.meta.url),
      parse: (result) => prepared.safeParse(result).data,
      failed: (failure) => ({ status: 'failed', failure }),
      memoryBytes: options.memoryBytes,
      startMs: START_MS,
      onEnd(why) {
        if (why === 'closed') return
        options.onRestart(why)
        options.log.warn({ why }, 'an image process was replaced')
      },
    })
    return { host, queue: openHostQueue([host], options.maxWaiting) }
  }
  const stop = () => {
    open?.host.close()
    open = undefined
  }

  return {
    async run(job, signal) {
      clearTimeout(idle)
      open ??= start()
      running++
      const ms = options.imageMs
      try {
        return await open.queue.use(signal, (host) => host.read({ ...job, maxPixels: MAX_PIXELS, ms }, ms, signal))
      } finally {
        if (--running === 0) idle = setTimeout(stop, IDLE_MS).unref()
      }
    },
    close() {
      clearTimeout(idle)
      stop()
    },
  }
}
