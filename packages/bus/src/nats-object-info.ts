import { z } from 'zod'

/** What stands under an object's name, as the NATS object store writes it. */
export const objectInfo = z.object({
  name: z.string(),
  bucket: z.string(),
  /** Which pieces are its own. */
  nuid: z.string(),
  size: z.int().nonnegative(),
  chunks: z.int().nonnegative(),
  /** `SHA-256=` and base64url of the whole. */
  digest: z.string(),
  mtime: z.iso.datetime(),
  deleted: z.boolean().default(false),
  options: z.object({ max_chunk_size: z.int().positive() }),
  /** Ours: where in the stream its first piece is, so that no reader searches for it. */
  metadata: z.object({ first: z.string().regex(/^\d+$/) }),
})
export type ObjectInfo = z.infer<typeof objectInfo>

export const digestOf = (hash: { digest(encoding: 'base64'): string }): string =>
  `SHA-256=${hash.digest('base64').replaceAll('+', '-').replaceAll('/', '_')}`

/** Names are written as base64url with its padding. */
export const encodeName = (name: string): string =>
  Buffer.from(name).toString('base64').replaceAll('+', '-').replaceAll('/', '_')
export const decodeName = (token: string): string => Buffer.from(token, 'base64url').toString('utf8')
