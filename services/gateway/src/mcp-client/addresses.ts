import {
  type Dialer,
  type JudgeHop,
  judgeUrl,
  openGuard,
  openPinnedClient,
  type PinnedClient,
  type Resolve,
  systemResolve,
} from '@tollgate/http'
import type { GatewaySettings } from '../settings.ts'

/** One message of a server, and so one result of a tool, as it is sent (M-14). */
const MOST_ANSWER_BYTES = 1024 * 1024

/** How servers are reached; a test brings its own names and ways. */
export interface Reach {
  resolve?: Resolve
  dialer?: Dialer
  ca?: string[]
}

/** Which addresses MCP servers may have (M-10). */
export const judgeServers = ({ mcpClient }: GatewaySettings, { resolve = systemResolve }: Reach): JudgeHop =>
  openGuard(resolve, { reach: { loopback: mcpClient.allowLoopback, private: mcpClient.allowPrivateHosts } })

export const clientOf = (judge: JudgeHop, { dialer, ca }: Reach): PinnedClient =>
  openPinnedClient({ judge, maxBytes: MOST_ANSWER_BYTES, ...(dialer && { dialer }), ...(ca && { ca }) })

/**
 * What is wrong with the address of a server, in words for whoever wrote it; undefined when nothing is. One that leads to
 * a place it may not and one that leads nowhere are told alike, so that nobody learns names of our network from it (BR-121).
 */
export async function addressProblem(
  { url, hasToken }: { url: string; hasToken: boolean },
  judge: JudgeHop,
  signal: AbortSignal,
): Promise<string | undefined> {
  const judged = judgeUrl(url)
  if (!judged.ok) return 'its url must be an http:// or https:// URL without a user or password in it'
  if (hasToken && judged.url.protocol === 'http:') return 'its url must be https:// when it has an authorization_token'
  const verdict = await judge(url, signal)
  return verdict.ok ? undefined : 'its url does not lead to an address that this gateway may connect to'
}
