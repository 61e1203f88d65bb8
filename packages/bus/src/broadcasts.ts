import type { Broadcast } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { z } from 'zod'

/** Takes news as it travelled. What does not parse comes from another release, and is passed over. */
export function readsWith<S extends z.ZodType>(
  { subject, event }: Broadcast<S>,
  listener: (event: z.output<S>) => void,
  log: Log,
): (json: string) => void {
  return (json) => {
    try {
      const read = event.safeParse(JSON.parse(json))
      if (read.success) listener(read.data)
      else log.warn({ subject }, 'news came in a shape that this release does not know')
    } catch (err) {
      log.error({ err, subject }, 'whoever listens to news threw')
    }
  }
}
