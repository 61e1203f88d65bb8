import { Fault, failures } from '@tollgate/contracts'
import { errorBody, tell } from '../../errors.ts'
import { UpstreamFault } from '../../models/upstream-fault.ts'

export interface ErrorAnswer {
  status: number
  headers: Record<string, string>
  body: object
}

/**
 * A failure before the first byte, as a Chat client reads it. Beside when to come back it is told, as the
 * vendor's own clients understand it, when coming back is no use; quota headers pass where the upstream speaks this
 * dialect too (BR-043). An overloaded upstream (529) is a 503.
 */
export function chatError(thrown: unknown): ErrorAnswer {
  const told = tell(thrown)
  const headers: Record<string, string> = {}
  if (told.retryAfterSeconds !== undefined) headers['retry-after'] = String(Math.ceil(told.retryAfterSeconds))
  if (thrown instanceof UpstreamFault) Object.assign(headers, passedOn(thrown))
  if (isFinal(thrown, told.status)) headers['x-should-retry'] = 'false'
  return { status: told.status, headers, body: errorBody(told, false) }
}

function passedOn({ wire, headers }: UpstreamFault): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.startsWith('retry-after') || wire === 'openai-chat'),
  )
}

/** Clients retry on 409 and on every 5xx by themselves; for what another try cannot help that only costs twice (BR-148). */
function isFinal(thrown: unknown, status: number): boolean {
  if (status !== 409 && status < 500) return false
  return !failures[Fault.from(thrown).failure].retry
}
