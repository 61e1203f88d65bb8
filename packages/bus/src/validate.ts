import { Fault } from '@tollgate/contracts'
import type { z } from 'zod'

/** What a caller sent, as the server's handler may believe it. */
export const readInput = <S extends z.ZodType>(schema: S, text: string): z.output<S> =>
  accept(schema, fromJson(text, 'invalid_request'))

/** The value as its schema fills it in, unless it is none. */
export function accept<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  throw new Fault('invalid_request', describe(read.error))
}

/** What a server answered: a reply of another shape than agreed is our own mistake, and no caller's. */
export function readOutput<S extends z.ZodType>(schema: S, text: string): z.output<S> {
  const read = schema.safeParse(fromJson(text, 'internal'))
  if (read.success) return read.data
  throw new Fault('internal', 'something went wrong on our side', { cause: read.error })
}

function fromJson(text: string, failure: 'invalid_request' | 'internal'): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Fault(failure, failure === 'internal' ? 'something went wrong on our side' : 'not JSON', { cause })
  }
}

/** Where and what, for the first few problems; zod's messages name types and limits, never the value. */
const describe = ({ issues }: z.ZodError): string =>
  issues
    .slice(0, 3)
    .map(({ path, message }) => (path.length > 0 ? `${path.join('.')}: ${message}` : message))
    .join('; ')
