import { heldBytes } from '../extract/held-bytes.ts'
import type { FromHost, ToHost } from '../extract/host-messages.ts'
import type { ImageJob } from './job.ts'
import { prepareImage } from './prepare.ts'

// A process that decodes images, one at a time. Native code cannot be stopped from within: whoever started the process
// ends it when an image takes too long or too much.

const WATCH_EVERY_MS = 50

const say = (message: FromHost): void => {
  process.send?.(message)
}

async function prepare({ id, job }: Extract<ToHost<ImageJob>, { id: number }>): Promise<void> {
  say({ type: 'started', id })
  const watch = setInterval(() => say({ type: 'memory', rssBytes: process.memoryUsage.rss() }), WATCH_EVERY_MS)
  try {
    const result = await prepareImage(job)
    say({ type: 'done', id, result, heldBytes: heldBytes() })
  } finally {
    clearInterval(watch)
  }
}

process.on('message', (message: ToHost<ImageJob>) => {
  if ('job' in message) void prepare(message) // it answers, or is ended from outside
})
// The signals of a terminal or an init reach this process too; it lives as long as its parent wants it, to let work end.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit(0))

say({ type: 'ready' })
