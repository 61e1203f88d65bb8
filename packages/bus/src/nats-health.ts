import type { Link } from './nats-link.ts'

const EVERY_MS = 5_000
const WITHIN_MS = 2_000

/** Whether an event can be expected to be stored. */
export interface Health {
  readonly canRecord: boolean
  /** A stream that events go to has just stored one. */
  worked(stream: string): void
  failed(): void
  close(): void
}

/** Asks now and then for the streams that were recorded to: a stream answers when it has a leader. Before the first, it asks for JetStream. */
export async function openHealth(link: Link): Promise<Health> {
  const streams = new Set<string>()
  let healthy = false
  let workedAt = 0

  async function look(): Promise<void> {
    if (!link.connected || Date.now() - workedAt < EVERY_MS) return
    const asked = streams.size > 0 ? [...streams].map((name) => `$JS.API.STREAM.INFO.${name}`) : ['$JS.API.INFO']
    const answers = await Promise.all(
      asked.map((subject) =>
        link.connection
          .request(subject, '', { timeout: WITHIN_MS })
          .then((message) => !('error' in message.json<object>()))
          .catch(() => false),
      ),
    )
    healthy = answers.every(Boolean)
  }
  await look()
  const timer = setInterval(() => void look(), EVERY_MS)
  timer.unref()
  // also on the way back, so that work is not turned away for longer than need be
  link.onChange(() => void look())
  return {
    get canRecord() {
      return healthy && link.connected
    },
    worked(stream) {
      streams.add(stream)
      healthy = true
      workedAt = Date.now()
    },
    failed() {
      healthy = false
      workedAt = 0
    },
    close: () => clearInterval(timer),
  }
}
