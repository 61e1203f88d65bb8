import { isIP } from 'node:net'
import { parseUrl } from '@tollgate/contracts'
import { parseAddress } from './addresses.ts'
import { normaliseHost } from './domains.ts'

/** The environment's proxy variables, as `run.ts` read them when the operator said to trust them (F-28). */
export interface ProxyVariables {
  httpProxy?: string
  httpsProxy?: string
  allProxy?: string
  noProxy?: string
}

export interface ProxyServer {
  url: URL
  host: string
  port: number
  /** `Proxy-Authorization`, from the proxy URL's user-info; sent to the proxy alone. */
  authorization?: string
}

/** The proxy a URL goes through; undefined: it goes direct, pinned. */
export type ChooseProxy = (url: URL) => ProxyServer | undefined

export const noProxies: ChooseProxy = () => undefined

/** Throws on a proxy URL that is not http or https (`socks5://` stops the start). */
export function openProxies(variables: ProxyVariables): ChooseProxy {
  const all = parseProxy('ALL_PROXY', variables.allProxy)
  const http = parseProxy('HTTP_PROXY', variables.httpProxy) ?? all
  const https = parseProxy('HTTPS_PROXY', variables.httpsProxy) ?? all
  const exempt = parseExemptions(variables.noProxy ?? '')
  return (url) => (exempt(url) ? undefined : url.protocol === 'https:' ? https : http)
}

function parseProxy(name: string, text: string | undefined): ProxyServer | undefined {
  if (text === undefined || text.trim() === '') return undefined
  const url = parseUrl(text)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') {
    throw new TypeError(`${name} is not an http or https proxy URL`)
  }
  const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  return {
    url,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
    ...(user === ':' ? {} : { authorization: `Basic ${Buffer.from(user).toString('base64')}` }),
  }
}

/** `NO_PROXY`: names with all below them, addresses, address blocks, each with or without a port; `*` is everything. */
function parseExemptions(text: string): (url: URL) => boolean {
  const rules = text
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .map(parseExemption)
  return (url) => {
    const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
    const port = url.port || (url.protocol === 'https:' ? '443' : '80')
    return rules.some((covers) => covers(host, port))
  }
}

function parseExemption(entry: string): (host: string, port: string) => boolean {
  if (entry === '*') return () => true
  const block = /^([^/]+)\/(\d{1,3})$/.exec(entry)
  if (block) return inBlock(block[1] ?? '', Number(block[2]))
  const split = isIP(entry) === 0 ? /^(.*):(\d+)$/.exec(entry) : null
  const name = normaliseHost((split?.[1] ?? entry).replace(/^\*?\./, ''))
  const wanted = split?.[2]
  return (host, port) =>
    name !== undefined &&
    (wanted === undefined || wanted === port) &&
    (host === name || (isIP(name) === 0 && host.endsWith(`.${name}`)))
}

function inBlock(prefix: string, bits: number): (host: string) => boolean {
  const base = parseAddress(prefix)
  if (!base) return () => false
  const shift = BigInt(Math.max(0, (base.family === 4 ? 32 : 128) - bits))
  return (host) => {
    const address = parseAddress(host)
    return address !== undefined && address.family === base.family && address.value >> shift === base.value >> shift
  }
}
