import { rpc } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import { z } from 'zod'

export const echoBy = (delivery: 'direct' | 'queue', idempotent = true) =>
  rpc({
    subject: `tg.v1.test.${delivery}`,
    delivery,
    idempotent,
    input: z.object({ text: z.string(), times: z.int().default(1) }),
    output: z.object({ text: z.string(), note: z.string().default('none') }),
    event: z.object({ type: z.enum(['begun', 'half']) }),
  })

/** What a bus logged, for tests that a cause is kept on the side where it happened. */
export interface Logged {
  level: string
  details: unknown
  text: string | undefined
}

export function listLog(): { log: Log; lines: Logged[] } {
  const lines: Logged[] = []
  const at = (level: string) => (details: unknown, text?: string) => {
    lines.push(typeof details === 'string' ? { level, details: {}, text: details } : { level, details, text })
  }
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log } as Log
  return { log, lines }
}
