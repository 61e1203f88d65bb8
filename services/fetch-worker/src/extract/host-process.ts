import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type FromHost, smallMain, type ToHost } from './host-messages.ts'

export interface HostOptions<R extends HostResult> {
  /** What the process runs; it speaks `host-messages.ts`. */
  script: URL
  /** What comes back from a process that hostile bytes have been in is believed no more than the bytes. */
  parse(result: unknown): R | undefined
  failed(failure: HostFailure): R
  /** Cap on the process's data: set from outside where the system can (Linux), and watched everywhere. */
  memoryBytes: number
  /** Time a thread may take to be there and loaded. */
  startMs: number
  /** Told of each process that ended, and why. */
  onEnd: (why: HostEnd) => void
}

export const hostEnds = ['closed', 'memory', 'stuck', 'crash', 'worn'] as const
export type HostEnd = (typeof hostEnds)[number]

/** What a body's reading came to when it was ended from outside. */
export type HostFailure = 'time' | 'memory' | 'crash'

/** What a process answers; other failures than these are the body's, and the process is as good as before. */
export type HostResult = { status: 'ok' } | { status: 'failed'; failure: HostFailure | (string & {}) }

const isEnded = (result: HostResult): boolean =>
  result.status === 'failed' && ['time', 'memory', 'crash'].includes(result.failure)

/** One process that reads bodies, one at a time; when it dies another is started. */
export interface Host<J, R> {
  /**
   * Reads a body within `ms`, or says why not. One at a time; rejects only when `signal` fires. A body that found too little
   * memory where others had been is read again where none has (F-26): what becomes of it does not depend on them.
   */
  read(job: J, ms: number, signal: AbortSignal): Promise<R>
  close(): void
}

/** A host ends a thread at twice the body's time at the latest; this long after that, nothing will but ending the host. */
const GRACE_MS = 500
const WALL_FACTOR = 2
/** A process that holds more than this when idle is replaced: memory that was freed does not all come back (measured). */
const WORN_SHARE = 0.75
/** Between two starts of a process that did not get as far as being ready. */
const RESTART_MS = { first: 250, most: 30_000 }

interface Reading<R> {
  id: number
  settle(result: R): void
  /** The thread is there: from now on only the body's own time counts. */
  started(): void
}

export function openHost<J, R extends HostResult>(options: HostOptions<R>): Host<J, R> {
  let child: ChildProcess | undefined
  let restart: NodeJS.Timeout | undefined
  let failedStarts = 0
  let closed = false
  let rssBytes = 0
  /** Bodies that the process has been given. */
  let reads = 0
  let next = 1
  let current: Reading<R> | undefined

  const start = (): void => {
    clearTimeout(restart)
    if (closed || child) return
    let isReady = false
    const started = spawnHost(options.script, options.memoryBytes)
    child = started
    rssBytes = 0
    started.on('message', (message: FromHost) => {
      if (message.type === 'ready') {
        isReady = true
        failedStarts = 0
      } else if (message.type === 'memory') {
        rssBytes = message.rssBytes
        if (rssBytes > options.memoryBytes) fail('memory', 'memory')
      } else if (message.id === current?.id) {
        if (message.type === 'started') return current.started()
        const result = options.parse(message.result) ?? options.failed('crash')
        if (isEnded(result) || message.heldBytes > options.memoryBytes * WORN_SHARE) {
          end('worn')
          start()
        }
        current.settle(result)
      }
    })
    started.on('error', () => died())
    started.on('exit', () => died())
    const died = (): void => {
      if (!isReady) failedStarts++
      // Under its cap a process dies at the allocation that does not fit, which it may not live to report.
      const why = rssBytes > options.memoryBytes / 2 ? 'memory' : 'crash'
      fail(why, why)
    }
  }

  const end = (why: HostEnd): void => {
    const dying = child
    child = undefined
    reads = 0
    if (!dying) return
    dying.removeAllListeners()
    dying.on('error', () => {}) // it is being killed
    dying.kill('SIGKILL')
    options.onEnd(why)
  }

  const fail = (why: HostEnd, failure: HostFailure): void => {
    end(why)
    current?.settle(options.failed(failure))
    clearTimeout(restart)
    if (failedStarts === 0) start()
    else restart = setTimeout(start, Math.min(RESTART_MS.most, RESTART_MS.first * 2 ** failedStarts))
  }

  const readOnce = (job: J, ms: number, signal: AbortSignal): Promise<R> => {
    if (closed) return Promise.resolve(options.failed('crash'))
    start()
    reads++
    const id = next++
    return new Promise<R>((resolve, reject) => {
      let timer = setTimeout(() => fail('stuck', 'crash'), options.startMs)
      const limit = (limitMs: number): void => {
        clearTimeout(timer)
        timer = setTimeout(() => fail('stuck', 'time'), limitMs)
      }
      const leave = (): void => {
        limit(GRACE_MS)
        child?.send({ cancel: id } satisfies ToHost)
      }
      current = {
        id,
        started: () => limit(signal.aborted ? GRACE_MS : ms * WALL_FACTOR + GRACE_MS),
        settle(result) {
          clearTimeout(timer)
          signal.removeEventListener('abort', leave)
          current = undefined
          if (signal.aborted) reject(signal.reason)
          else resolve(result)
        },
      }
      signal.addEventListener('abort', leave, { once: true })
      child?.send({ id, job, ms } satisfies ToHost<J>)
      if (signal.aborted) leave()
    })
  }

  start()
  return {
    async read(job, ms, signal) {
      const isFirst = reads === 0
      const result = await readOnce(job, ms, signal)
      const isShort = result.status === 'failed' && result.failure === 'memory'
      return isShort && !isFirst ? readOnce(job, ms, signal) : result
    },
    close() {
      closed = true
      clearTimeout(restart)
      end('closed')
      current?.settle(options.failed('crash'))
    },
  }
}

const PRLIMIT = '/usr/bin/prlimit'
const typescriptLoader = new URL('../../../../scripts/ts.mjs', import.meta.url).href
const runsTypescript = Boolean(Reflect.get(process.features, 'typescript'))

/** One malloc arena instead of one a thread: what a page leaves behind is used again by the next (a tenth less, measured). */
const environment = { MALLOC_ARENA_MAX: '1' }

/** Starts it with nothing of our environment, and under a cap where there is `prlimit`. */
function spawnHost(script: URL, memoryBytes: number): ChildProcess {
  const host = fileURLToPath(script)
  const node = [process.execPath, smallMain, ...(runsTypescript ? [] : ['--import', typescriptLoader]), host]
  const capped = existsSync(PRLIMIT) ? [PRLIMIT, `--data=${memoryBytes}`, '--core=0', ...node] : node
  const [command = process.execPath, ...args] = capped
  return spawn(command, args, {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
    env: environment,
  })
}
