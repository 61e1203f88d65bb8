import { z } from 'zod'

/**
 * Who a piece of work is for. The gateway alone sets it, every message carries it, and a service refuses a message
 * without it. `request` is the client request's id, the same in every hop, log line and usage row.
 */
export const tenancy = z.object({
  organization: z.string().min(1),
  workspace: z.string().min(1),
  user: z.string().min(1),
  key: z.string().min(1),
  request: z.string().min(1),
  attempt: z.int().nonnegative(),
})
export type Tenancy = z.infer<typeof tenancy>
