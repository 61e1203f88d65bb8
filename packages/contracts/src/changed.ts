import { z } from 'zod'
import { broadcast } from './rpc.ts'

/** Something stored has changed: whoever caches it reads again at its next need. */
export const changedKeys = broadcast({ subject: 'tg.v1.changed.keys', event: z.object({ key: z.string().optional() }) })
export const changedSettings = broadcast({ subject: 'tg.v1.changed.settings', event: z.object({}) })
export const changedSeats = broadcast({ subject: 'tg.v1.changed.seats', event: z.object({}) })
export const changedPolicies = broadcast({
  subject: 'tg.v1.changed.policies',
  event: z.object({ workspace: z.string().optional() }),
})
export const changedPrices = broadcast({ subject: 'tg.v1.changed.prices', event: z.object({}) })
