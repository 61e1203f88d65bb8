import { Fault, failures } from '@tollgate/contracts'
import type { Dialect } from '../conversation/turn.ts'
import { errorBody, tell } from '../errors.ts'
import { dialectOfWire } from '../models/provider.ts'
import { UpstreamFault } from '../models/upstream-fault.ts'

export interface ErrorAnswer {
  status: number
  headers: Record<string, string>
  body: object
}

const OVERLOADED = 529

/**
 * A failure before the first byte, as a client of `dialect` reads it (R-60, R-61). Beside when to come back it is told,
 * as the vendors' own clients understand it, when coming back is no use; quota headers pass where the upstream speaks
 * this dialect too (BR-043). An overloaded upstream (529) is a 503 to clients that know no such status.
 */
export function errorAnswer(thrown: unknown, dialect: Dialect): ErrorAnswer {
  const told = tell(thrown)
  const overloaded = dialect === 'messages' && thrown instanceof UpstreamFault && thrown.upstreamStatus === OVERLOADED
  const status = overloaded ? OVERLOADED : told.status
  const headers: Record<string, string> = {}
  if (told.retryAfterSeconds !== undefined) headers['retry-after'] = String(Math.ceil(told.retryAfterSeconds))
  if (thrown instanceof UpstreamFault) Object.assign(headers, passedOn(thrown, dialect))
  if (isFinal(thrown, status)) headers['x-should-retry'] = 'false'
  return { status, headers, body: errorBody({ ...told, status }, dialect === 'messages') }
}

function passedOn({ wire, headers }: UpstreamFault, dialect: Dialect): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.startsWith('retry-after') || dialectOfWire[wire] === dialect),
  )
}

/** Clients retry on 409 and on every 5xx by themselves; for what another try cannot help that only costs twice (BR-148). */
function isFinal(thrown: unknown, status: number): boolean {
  if (status !== 409 && status < 500) return false
  return !failures[Fault.from(thrown).failure].retry
}
