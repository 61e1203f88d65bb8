import type { FastifySchemaCompiler } from 'fastify'
import { z } from 'zod'

export interface Problem {
  loc: (string | number)[]
  msg: string
  type: string
}

/** A request that does not have the form it must have: 422 with every place that is wrong. */
export class Invalid extends Error {
  override readonly name = 'Invalid'
  readonly statusCode = 422
  readonly problems: Problem[]

  constructor(problems: Problem[]) {
    super('the request is not valid')
    this.problems = problems
  }
}

const MOST_PROBLEMS = 20

/** So many items of a list are checked at once. */
const STRETCH = 100

/**
 * A list of at least so many items. Its check ends soon after the last mistake anyone is told of: a mistake costs a
 * hundred times what a right item does, and a body has room for millions.
 */
export const list = <T extends z.ZodType>(item: T, least = 0) => {
  const stretch = z.array(item)
  return z
    .array(z.unknown())
    .min(least)
    .transform((entries, context) => {
      const read: z.output<T>[] = []
      for (let from = 0; from < entries.length; from += STRETCH) {
        const { data, error } = stretch.safeParse(entries.slice(from, from + STRETCH))
        if (data) for (const entry of data) read.push(entry)
        for (const { path, ...issue } of error?.issues ?? []) {
          const [at, ...within] = path
          const told = { ...issue, input: undefined, path: [from + Number(at), ...within] }
          // it is a list all the same: among other forms this one is meant, and its own mistakes are the ones to tell
          context.issues.push({ ...told, continue: true } as z.core.$ZodRawIssue)
        }
        if (context.issues.length >= MOST_PROBLEMS) break
      }
      return read
    })
}

const places: Record<string, string> = { querystring: 'query', params: 'path', headers: 'header' }

/** Checks a request's part by its zod schema; what the client sent is never quoted back. */
export const validateWithZod: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart = 'body' }) => {
  const place = places[httpPart] ?? httpPart
  return (data: unknown) => {
    const result = schema.safeParse(data)
    return result.success ? { value: result.data } : { error: new Invalid(problemsOf(result.error, place)) }
  }
}

export const problemsOf = (error: z.ZodError, place: string): Problem[] =>
  error.issues.slice(0, MOST_PROBLEMS).map(({ path, message, code }) => ({
    loc: [place, ...path.map((step) => (typeof step === 'symbol' ? String(step) : step))],
    msg: message.slice(0, 500),
    type: code,
  }))
