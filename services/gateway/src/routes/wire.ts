import type { FastifySerializerCompiler } from 'fastify/types/schema.js'
import { z } from 'zod'
import { writeJson } from '../exact-json.ts'

/** A name or a note: something to show, which a database can hold. */
export const shortText = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must have no control characters and no half of a surrogate pair')

/** As they stand in JSON text: a NUL and half of a surrogate pair, which no JSON in Postgres may hold. */
const NOT_TEXT = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/

/** An object that a database can hold. */
export const jsonText = z
  .record(z.string().max(128), z.json())
  .refine((value) => !NOT_TEXT.test(JSON.stringify(value)), 'must have no NUL and no half of a surrogate pair')

/** What a caller wants kept beside a row. */
export const metadata = jsonText.refine(
  (value) => JSON.stringify(value).length <= 16_384,
  'must be at most 16 KiB of JSON',
)

/** What a model is told a tool is for (T-30). A blank one is none. */
export const hint = z
  .string()
  .max(2_048)
  .regex(/^[^\0\p{Cs}]*$/u, 'must have no NUL and no half of a surrogate pair')
  .transform((text) => text.trim() || null)

export const paging = {
  skip: z.coerce.number().int().min(0).max(10_000_000).default(0),
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
}

/** An instant with its offset, as the database's own type, in the years that every database and calendar knows. */
export const instant = z.iso
  .datetime({ offset: true })
  .refine((text) => {
    const year = new Date(text).getUTCFullYear()
    return year >= 1 && year <= 9_999
  }, 'must lie in the years 1 to 9999')
  .transform((text) => new Date(text))

export const listOf = <T extends z.ZodType>(item: T) => z.strictObject({ data: z.array(item), count: z.int() })

/** What a route answers is checked like what it is asked: a member nobody declared is a bug, and stays inside. */
export const serializeWithZod: FastifySerializerCompiler<z.ZodType> =
  ({ schema, method, url }) =>
  (data: unknown) => {
    const result = schema.safeParse(data)
    if (!result.success) throw new Error(`${method} ${url} answers other than it declares`, { cause: result.error })
    return writeJson(result.data)
  }
