import { Fault } from '@tollgate/contracts'

/** Failures of reaching the system below, by Node's names. */
const systemErrors = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT', // a Unix socket that is not there
])

/** SQLSTATEs that say the server is going, full or not there yet; class 08 is the connection itself. */
const serverStates = new Set(['57P01', '57P02', '57P03', '53300'])
const STATEMENT_CANCELLED = '57014'
/** NUL, as a parameter or inside JSON: no text of Postgres may hold it. */
const NOT_TEXT = new Set(['22021', '22P05'])

/** pg's own words for a lost connection, which carry no code. */
const driverWords =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout exceeded when trying to connect|Cannot use a pool after calling end|Query read timeout)/

/** True when the connection an error came from must not be lent again. */
export function brokeConnection(thrown: unknown): boolean {
  const code = codeOf(thrown)
  if (code !== undefined && (systemErrors.has(code) || code.startsWith('08') || serverStates.has(code))) return true
  return thrown instanceof Error && driverWords.test(thrown.message)
}

/**
 * `unavailable` for what another try on a sound connection may mend, `timeout` for a statement that took too long,
 * `invalid_value` for text from outside that no column can hold. What else the server says about a statement passes
 * unchanged: only the caller knows what it means.
 */
export function databaseFault(thrown: unknown): unknown {
  if (thrown instanceof Fault) return thrown
  if (brokeConnection(thrown)) return new Fault('unavailable', 'the database cannot be reached', { cause: thrown })
  const code = codeOf(thrown)
  if (code === STATEMENT_CANCELLED) return new Fault('timeout', 'the database took too long', { cause: thrown })
  if (code !== undefined && NOT_TEXT.has(code)) {
    return new Fault('invalid_value', 'a text holds a character that cannot be stored', { cause: thrown })
  }
  return thrown
}

/** An error's code: Node's (`ECONNREFUSED`) or the server's SQLSTATE. */
export function codeOf(thrown: unknown): string | undefined {
  if (thrown instanceof AggregateError) return codeOf(thrown.errors[0])
  if (!(thrown instanceof Error) || !('code' in thrown)) return undefined
  return typeof thrown.code === 'string' ? thrown.code : undefined
}
