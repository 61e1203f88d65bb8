import type { IncomingHttpHeaders } from 'node:http'
import type { FakeJson } from './model-script.ts'

export const MCP_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26']
/** Headers that no server of somebody else's may be sent. */
const FORBIDDEN = ['traceparent', 'tracestate', 'baggage', 'cookie', 'otari-key', 'x-api-key']

interface Asked {
  http: string
  headers: IncomingHttpHeaders
  message: FakeJson | undefined
}

/** What the protocol's transport does not allow a client ("Streamable HTTP", revision 2025-11-25), and what none may send. */
export function mcpMistake(
  { http, headers, message }: Asked,
  { token, known }: { token: string | undefined; known: boolean },
): { status: number; why: string } | undefined {
  const wrong = (status: number, why: string) => ({ status, why })
  const sent = FORBIDDEN.find((name) => headers[name] !== undefined)
  if (sent) return wrong(400, `the header ${sent} is none of its business`)
  if (token !== undefined && headers.authorization !== `Bearer ${token}`) return wrong(401, 'no token')
  if (token === undefined && headers.authorization !== undefined) return wrong(400, 'a token nobody asked for')
  const begins = message?.method === 'initialize'
  if (!begins && !known) return wrong(404, 'Session not found')
  if (!begins && !MCP_VERSIONS.includes(String(headers['mcp-protocol-version'])))
    return wrong(400, 'no protocol version that was agreed on')
  if (http === 'DELETE') return undefined
  if (http !== 'POST') return wrong(405, `${http} is not served`)
  if (!/application\/json/.test(headers.accept ?? '') || !/text\/event-stream/.test(headers.accept ?? ''))
    return wrong(406, 'both forms of an answer must be accepted')
  if (headers['content-type'] !== 'application/json') return wrong(415, 'the body is no JSON')
  return message?.jsonrpc === '2.0' ? undefined : wrong(400, 'not JSON-RPC 2.0')
}
