import { Piscina } from 'piscina'
import { isPdf } from './content-type.ts'
import { openCpuClock } from './cpu-clock.ts'
import type { Task } from './extract.worker.ts'
import { heldBytes } from './held-bytes.ts'
import { type FromHost, smallMain, type ToHost } from './host-messages.ts'
import type { Extracted } from './job.ts'

// A process that holds one extracting thread, so that whatever a body does to it can be ended from outside: the thread by
// this process, this process by whoever started it. It reads one body at a time.

const THREAD_HEAP_MB = 224
const WATCH_EVERY_MS = 50
/** On a machine that is busy with other things a body may take this many times its processor time. */
const WALL_FACTOR = 2

const pool = new Piscina<Task, unknown>({
  filename: new URL('./extract.worker.ts', import.meta.url).href,
  minThreads: 1,
  maxThreads: 1,
  idleTimeout: Number.POSITIVE_INFINITY,
  execArgv: process.execArgv.filter((argument) => argument !== smallMain),
  resourceLimits: { maxOldGenerationSizeMb: THREAD_HEAP_MB, maxYoungGenerationSizeMb: 16 },
})
let running: { id: number; end: AbortController } | undefined
/** What the thread that is there has loaded. */
const warm = new Set<string>()

const say = (message: FromHost): void => {
  process.send?.(message)
}

async function load(kind: 'html' | 'pdf', signal?: AbortSignal): Promise<void> {
  if (warm.has(kind)) return
  await pool.run({ warm: kind }, signal ? { signal } : {})
  warm.add(kind)
}

async function read({ id, job, ms }: Extract<ToHost, { id: number }>): Promise<void> {
  const end = new AbortController()
  running = { id, end }
  let watch: NodeJS.Timeout | undefined
  let isLate = false
  try {
    await load('html', end.signal)
    if (isPdf(job.contentType, job.bytes)) await load('pdf', end.signal)
    say({ type: 'started', id })
    const cpuMs = openCpuClock()
    const startedAt = performance.now()
    watch = setInterval(() => {
      say({ type: 'memory', rssBytes: process.memoryUsage.rss() })
      isLate = cpuMs() > ms || performance.now() - startedAt > ms * WALL_FACTOR
      if (isLate) end.abort()
    }, WATCH_EVERY_MS)
    // The bytes came in a buffer shared with other messages: the thread is given a copy of its own.
    const bytes = new Uint8Array(job.bytes)
    const result = await pool.run({ job: { ...job, bytes } }, { signal: end.signal, transferList: [bytes.buffer] })
    say({ type: 'done', id, result, heldBytes: heldBytes() })
  } catch (thrown) {
    const failure = isLate ? 'time' : isOutOfMemory(thrown) ? 'memory' : 'crash'
    // The thread is gone, and what it leaves behind is not known: this process is replaced.
    say({ type: 'done', id, result: { status: 'failed', failure } satisfies Extracted, heldBytes: heldBytes() })
  } finally {
    clearInterval(watch)
    running = undefined
  }
}

/** The thread's heap was full, or V8 was refused the memory of a buffer or of WebAssembly. */
const isOutOfMemory = (thrown: unknown): boolean =>
  thrown instanceof Error &&
  (('code' in thrown && thrown.code === 'ERR_WORKER_OUT_OF_MEMORY') || /allocat/i.test(thrown.message))

process.on('message', (message: ToHost) => {
  if ('cancel' in message) {
    if (running?.id === message.cancel) running.end.abort()
  } else void read(message) // it answers whatever happens
})
// The signals of a terminal or an init reach this process too; it lives as long as its parent wants it, to let work end.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit(0))

await load('html')
say({ type: 'ready' })
