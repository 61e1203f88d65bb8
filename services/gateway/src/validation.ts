import type { FastifySchemaCompiler } from 'fastify'
import type { z } from 'zod'

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
