import { sandboxLimit } from '@tollgate/contracts'
import { z } from 'zod'

/**
 * What a protocol v1 backend answers. Unknown members are dropped (CP-21); what is read here and wrongly shaped is a
 * breach of the contract, never guessed at.
 */
const absent = <T extends z.ZodType>(shape: T) => shape.nullish().transform((value) => value ?? undefined)

/** CP-04. `.` and `..` cannot be a path segment of a URL, so such a session could never be addressed (CP-02). */
export const sessionHandle = z.object({
  session_id: z.string().refine((id) => id !== '' && id !== '.' && id !== '..'),
  idle_timeout_seconds: absent(z.number().positive()),
  max_lifetime_seconds: absent(z.number().positive()),
  isolation: z.string().max(64).optional().catch(undefined),
})

/** CP-30: what is no string becomes one, and lone surrogates become U+FFFD. */
const stream = z
  .unknown()
  .optional()
  .transform((value) => {
    if (value === undefined || value === null) return ''
    return (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed()
  })

/** CP-11: an entry without its name or its id can be neither shown nor fetched. */
const outputFile = z.object({ file_id: z.string().min(1), filename: z.string().min(1).max(1_024) })
const outputFiles = z
  .array(z.unknown())
  .nullish()
  .transform((entries) => (entries ?? []).flatMap((entry) => outputFile.safeParse(entry).data?.filename ?? []))

/** CP-10, CP-13: an error variant is a breach, since an empty success is what it would be read as. */
const executionResult = z
  .looseObject({
    stdout: stream,
    stderr: stream,
    return_code: z
      .int()
      .nullish()
      .transform((code) => code ?? 0),
    content: outputFiles,
    // of the bundled backend; others may mean something else by it
    ended_by: sandboxLimit.optional().catch(undefined),
  })
  .refine(({ type, error_code }) => error_code === undefined && !(typeof type === 'string' && type.endsWith('_error')))

/** CP-09: the block is nested; its `type` may be any string. */
export const execResponse = z.object({
  tool_use_id: z.string(),
  result_block: z.object({ type: z.string(), tool_use_id: z.string(), content: executionResult }),
})

/** CP-18 */
export const fileList = z.object({
  files: z.array(
    z.object({
      path: z.string().min(1),
      size_bytes: z.int().nonnegative(),
      mime_type: absent(z.string()),
      modified_at: absent(z.number()),
    }),
  ),
})

/** CP-20 */
export const fileWritten = z.object({ path: z.string().min(1), size_bytes: z.int().nonnegative() })

/** Events of a streamed call, beyond version 1: `output` any number of times, then one `result` or `error`. */
export const outputEvent = z.object({ stream: z.enum(['stdout', 'stderr']), text: z.string() })
export const errorEvent = z.object({ status: z.int() })
