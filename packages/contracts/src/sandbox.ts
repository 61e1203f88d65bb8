import { z } from 'zod'
import { Fault } from './failures.ts'
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

/** What a request asks for beyond a sandbox of its own: one to be kept (best effort), or the one that it names (C-03). */
export const containerWish = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('auto') }),
  z.object({ kind: z.literal('id'), id: z.string().min(1).max(256) }),
])

/** A sandbox kept for a later request; named to the client only if it will really exist (C-19). */
export const heldContainer = z.object({
  /** `otari_cntr_` and 32 hex digits (C-32). */
  id: z.string(),
  /** Min of idle and hard end as they stand now (C-11). */
  expiresAt: z.iso.datetime(),
})
export type HeldContainer = z.infer<typeof heldContainer>

/**
 * Leases a session for one request. Fails `upstream` when the backend cannot be reached and `unavailable`, with
 * `retryAfterSeconds`, when it is at capacity; with a container's id also `invalid_request` when there is none
 * such for this caller (C-13) and `conflict` while another request of theirs has it (C-16). The session lives in the
 * backend: any replica may serve it.
 */
export const sandboxOpen = rpc({
  subject: 'tg.v1.sandbox.open',
  delivery: 'direct',
  idempotent: false,
  input: z.object({
    tenancy,
    /** The image a workspace pins (W-22); the deployment's own when absent. */
    image: z.string().optional(),
    container: containerWish.optional(),
    /** How long the request may need it: told to providers that end a session at a set time (CP-24). */
    leaseSeconds: z.int().min(1).max(3_600).default(3_600),
  }),
  /** As soon as there is one, or it is claimed: should nothing come after it, the caller still knows what to give back. */
  event: z.discriminatedUnion('type', [z.object({ type: z.literal('leased'), session: z.string().min(1) })]),
  output: z.object({
    session: z.string().min(1),
    isolation: z.string().optional(),
    container: heldContainer.optional(),
  }),
})

/** How long a claim on a container holds without being renewed: so long one of a gateway that died blocks it (C-17). */
export const CLAIM_SECONDS = 60

/**
 * Says that the request which claimed the container is still under way. A claim ends soon after its last renewal, so that
 * one of a gateway that died blocks nobody for long (C-17). False: the claim is not this request's any more.
 */
export const sandboxRenew = rpc({
  subject: 'tg.v1.sandbox.renew',
  delivery: 'direct',
  idempotent: true,
  input: z.object({ tenancy, container: z.string().min(1) }),
  output: z.object({ renewed: z.boolean() }),
})

/** C-13 and C-14: the one text for a container that is unknown, expired, another's or of another provider. */
export function noSuchContainer(id: string): Fault {
  const clean = id.replace(/[^\x20-\x7e]/g, '')
  const shown = clean.length > 64 ? `${clean.slice(0, 64)}…` : clean
  return new Fault('invalid_request', `Container '${shown}' has expired or does not exist.`)
}

/** Which limit of the sandbox ended a call. */
export const sandboxLimit = z.enum(['time', 'memory', 'processes', 'disk', 'cancelled'])

export const sandboxExec = rpc({
  subject: 'tg.v1.sandbox.exec',
  delivery: 'direct',
  idempotent: false,
  input: z.object({
    tenancy,
    session: z.string().min(1),
    /** Python source, or a command line for `kind: 'shell'`. */
    code: z.string(),
    kind: z.enum(['python', 'shell']).default('python'),
    /** Send output as events while it is written, where the backend can; the whole of it still comes at the end. */
    stream: z.boolean().default(false),
    /** What the backend is granted; the client's own clock runs 10 s longer. */
    timeoutSeconds: z.int().min(1).max(600).default(60),
  }),
  event: z.discriminatedUnion('type', [
    z.object({ type: z.literal('running') }),
    z.object({ type: z.literal('output'), stream: z.enum(['stdout', 'stderr']), text: z.string() }),
  ]),
  output: z.discriminatedUnion('status', [
    z.object({
      status: z.literal('ok'),
      stdout: z.string(),
      stderr: z.string(),
      returnCode: z.int(),
      /** Absent: it ended by itself, or the backend does not say. */
      limit: sandboxLimit.optional(),
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

/**
 * Ends a request's use of the session. Without `container` it is released; a session already gone is success (CP-15).
 * With it the claim ends and the sandbox stays for the next request (C-18, CP-25), unless `discard` says that nobody was
 * told of it (C-29).
 */
export const sandboxClose = rpc({
  subject: 'tg.v1.sandbox.close',
  delivery: 'direct',
  idempotent: true,
  input: z.object({
    tenancy,
    session: z.string().min(1),
    container: z.string().optional(),
    discard: z.boolean().default(false),
  }),
  output: z.object({ container: heldContainer.optional() }),
})
