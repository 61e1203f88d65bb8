import { z } from 'zod'
import { rpc } from './rpc.ts'

/** Which key of a hosted sandbox is in force, and as much of it as may be shown (CFG-53). */
export const sandboxCredential = z.object({
  /** Null: there is no key, or it is too short to show a part of. */
  last4: z.string().max(4).nullable(),
  source: z.enum(['stored', 'environment']).nullable(),
  /** False: one is stored that no secret key opens, and it is passed over. */
  decryptable: z.boolean().default(true),
})
export type SandboxCredential = z.infer<typeof sandboxCredential>

/** What a vendor gives out as a key, and what may stand in a header. */
export const apiKeyText = z
  .string()
  .min(8, 'must have at least 8 characters')
  .max(512)
  .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without blanks')

const shape = { delivery: 'direct', idempotent: true, output: sandboxCredential } as const

export const sandboxCredentialGet = rpc({ subject: 'tg.v1.sandbox.credential.get', input: z.object({}), ...shape })
/** Fails `invalid_request` where no secret key is set. */
export const sandboxCredentialPut = rpc({
  subject: 'tg.v1.sandbox.credential.put',
  input: z.object({ apiKey: apiKeyText }),
  ...shape,
})
export const sandboxCredentialClear = rpc({ subject: 'tg.v1.sandbox.credential.clear', input: z.object({}), ...shape })
/** Brings the stored key under the first secret key. */
export const sandboxCredentialReencrypt = rpc({
  subject: 'tg.v1.sandbox.credential.reencrypt',
  delivery: 'direct',
  idempotent: true,
  input: z.object({}),
  output: z.object({ reencrypted: z.int(), unreadable: z.int(), skipped: z.int() }),
})
