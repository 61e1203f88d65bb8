import { Fault, parseUrl } from '@tollgate/contracts'

interface Origins {
  /** The gateway's own address, as the operator told it. */
  publicBaseUrl: string | undefined
  allowed: readonly string[]
}

/**
 * Refuses calls that a browser makes for a site nobody named: a name that was rebound to this machine is still the site's
 * own in `Origin` (MCP, Streamable HTTP, security). Programs send none; a page on this machine may call.
 */
export function refuseForeignOrigin(origin: string | undefined, { publicBaseUrl, allowed }: Origins): void {
  if (origin === undefined) return
  const from = parseUrl(origin)
  const known = [...allowed, ...(publicBaseUrl === undefined ? [] : [publicBaseUrl])]
  const welcome =
    from !== undefined && (isLoopback(from.hostname) || known.some((url) => new URL(url).origin === from.origin))
  if (!welcome) throw new Fault('forbidden', 'this origin may not call the MCP server')
}

const isLoopback = (host: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(host)
