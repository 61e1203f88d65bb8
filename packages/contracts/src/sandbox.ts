import { z } from 'zod'
import { rpc } from './rpc.ts'
import { tenancy } from './tenancy.ts'

/** A file beside the bus: who stored it can be asked for its bytes by this id (`packages/files`). */
export const fileReference = z.object({
  id: z.string(),
  name: z.string(),
  mediaType: z.string(),
  bytes: z.int().nonnegative(),
})
export type FileReference = z.infer<typeof fileReference>

export const sandboxDescribe = rpc({
  subject: 'tg.v1.sandbox.describe',
  delivery: 'direct',
  idempotent: true,
  input: z.object({}),
  output: z.object({ available: z.boolean(), provider: z.string(), reason: z.string().optional() }),
})

/**
 * Leases a session for one request. Fails `upstream` when the backend cannot be reached and `unavailable`, with
 * `retryAfterSeconds`, when it is at capacity. The session lives in the backend: any replica may serve it.
 */
export const sandboxOpen = rpc({
  subject: 'tg.v1.sandbox.open',
  delivery: 'direct',
  idempotent: false,
  input: z.object({ tenancy, image: z.string().optional() }),
  output: z.object({ session: z.string().min(1), isolation: z.string().optional() }),
})

export const sandboxExec = rpc({
  subject: 'tg.v1.sandbox.exec',
  delivery: 'direct',
  idempotent: false,
  input: z.object({
    tenancy,
    session: z.string().min(1),
    code: z.string(),
    /** What the backend is granted; the client's own clock runs 10 s longer. */
    timeoutSeconds: z.int().min(1).max(600).default(60),
  }),
  event: z.object({ type: z.enum(['running']) }),
  output: z.discriminatedUnion('status', [
    z.object({
      status: z.literal('ok'),
      stdout: z.string(),
      stderr: z.string(),
      returnCode: z.int(),
      /** Produced files; `file` is absent when one is named but was not stored (FI-22). */
      files: z.array(z.object({ name: z.string(), file: fileReference.optional() })),
    }),
    /** `unreachable`: no answer; `lost`: the session is gone (BR-128); `refused`: the backend broke the contract or said no. */
    z.object({ status: z.literal('failed'), reason: z.enum(['unreachable', 'lost', 'timeout', 'busy', 'refused']) }),
  ]),
})

/** Puts a stored file into the session's working directory before the first call (FI-12). */
export const sandboxSeed = rpc({
  subject: 'tg.v1.sandbox.seed',
  delivery: 'direct',
  idempotent: true,
  input: z.object({ tenancy, session: z.string().min(1), files: z.array(fileReference).max(100) }),
  output: z.object({ names: z.array(z.string()) }),
})

/** Releases the session; a session already gone is success (CP-15). */
export const sandboxClose = rpc({
  subject: 'tg.v1.sandbox.close',
  delivery: 'direct',
  idempotent: true,
  input: z.object({ tenancy, session: z.string().min(1) }),
  output: z.object({}),
})
