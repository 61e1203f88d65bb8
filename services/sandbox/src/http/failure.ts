import { ZodError } from 'zod'
import { FileRefused, SandboxLost } from '../drivers/driver.ts'
import { TooManyCalls } from '../sessions.ts'
import { HttpRefusal } from './refusal.ts'

export interface Failure {
  status: number
  detail: string
}

/** What a client is told of a failure. What it did wrong is never a 5xx, and what we did wrong says nothing of us. */
export function failureOf(error: unknown): Failure {
  const status = statusOf(error)
  const isTold = error instanceof Error && (status < 500 || status === 503)
  return { status, detail: isTold ? error.message : 'something went wrong' }
}

function statusOf(error: unknown): number {
  if (error instanceof HttpRefusal || error instanceof FileRefused) return error.status
  if (error instanceof SandboxLost) return 404
  if (error instanceof TooManyCalls) return 503
  // malformed JSON, another media type, a body too large: the contract has one status for them
  if (error instanceof ZodError) return 422
  const refused = error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number'
  return refused && (error.statusCode as number) < 500 ? 422 : 500
}
