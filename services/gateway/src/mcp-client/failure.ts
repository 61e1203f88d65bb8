import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpError } from '@modelcontextprotocol/sdk/types.js'
import { AnswerTooLarge, ConnectFailure } from '@tollgate/http'

/** What kept an MCP server from answering. */
export const troubles = [
  'unreachable',
  'timeout',
  'too_large',
  /** Its stream ended without the answer. */
  'unanswered',
  /** An HTTP status that is no answer, a redirect that is not followed among them (M-11). */
  'http_error',
  /** The server knows the session no more, and so did nothing of what was asked in it. */
  'session_lost',
  /** An error of the protocol. */
  'protocol_error',
  /** Its listing has no end, or more than any request could use. */
  'listing_endless',
  /** What it said is nothing this client understands. */
  'not_understood',
] as const
export type ServerTrouble = (typeof troubles)[number]

/** In what words servers say so that do not answer 404, as the protocol has it. */
const LOST = /\bsession\b.{0,40}\b(not found|terminated|expired|unknown|invalid)\b/i

/**
 * A failed exchange with an MCP server, told without a word of the server's own: it may quote the token it was sent
 * (M-21, BR-122).
 */
export class ServerFailure extends Error {
  override readonly name = 'ServerFailure'
  readonly trouble: ServerTrouble
  /** The HTTP status or the JSON-RPC code. */
  readonly code: number | undefined

  constructor(trouble: ServerTrouble, code?: number) {
    super(code === undefined ? trouble : `${trouble} (${code})`)
    this.trouble = trouble
    this.code = code
  }

  static from(thrown: unknown): ServerFailure {
    if (thrown instanceof ServerFailure) return thrown
    if (thrown instanceof AnswerTooLarge) return new ServerFailure('too_large')
    if (thrown instanceof ConnectFailure) return new ServerFailure('unreachable')
    if (thrown instanceof StreamableHTTPError)
      return thrown.code === undefined || thrown.code < 0
        ? new ServerFailure('not_understood')
        : new ServerFailure('http_error', thrown.code)
    if (thrown instanceof McpError)
      return new ServerFailure(LOST.test(thrown.message) ? 'session_lost' : 'protocol_error', thrown.code)
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
    return new ServerFailure(typeof code === 'string' ? 'unreachable' : 'not_understood')
  }
}
