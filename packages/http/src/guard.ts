import { parseUrl } from '@tollgate/contracts'
import { type AddressRules, addressClassifier, parseAddress } from './addresses.ts'
import { hostOf, normaliseHost } from './domains.ts'
import type { Resolve } from './resolve.ts'

/** What a surface lets through beside the public internet. Empty by default. */
export interface GuardOptions extends AddressRules {
  /** Addresses of these kinds pass; metadata endpoints, multicast and reserved ones never do. */
  reach?: { loopback?: boolean; private?: boolean }
  /** Exact host names whose addresses are not judged; no wildcards. They are still resolved once and pinned (WM-86). */
  allowedHosts?: string[]
}

/** A URL that may be requested, with the one address its socket must go to. */
export interface Hop {
  url: URL
  /** Without brackets or trailing dot: what TLS is asked for and domain rules are applied to. */
  host: string
  port: number
  address: string
}

export type HopVerdict = { ok: true; hop: Hop } | { ok: false; why: 'disallowed' | 'unresolvable' }

export type UrlVerdict = { ok: true; url: URL; host: string } | { ok: false }

/** Longest URL that is looked at (F-30). */
const MAX_URL_CHARACTERS = 8_192

/**
 * Judges the text of a URL without asking anybody (WM-80, F-30). It is parsed once; everything later uses that parse, so
 * no second parser can see another host in it.
 */
export function judgeUrl(raw: string): UrlVerdict {
  const text = raw.replace(/^[ \t\r\n\f]+|[ \t\r\n\f]+$/g, '')
  if (text.length > MAX_URL_CHARACTERS || hasForbiddenCharacter(text)) return { ok: false }
  const url = /^https?:\/\//i.test(text) ? parseUrl(text) : undefined
  if (url?.username !== '' || url.password !== '' || url.port === '0') return { ok: false }
  const host = hostOf(url)
  return host === undefined ? { ok: false } : { ok: true, url, host }
}

const classifyLiteral = addressClassifier()

/**
 * Judges a URL that somebody else is going to fetch: all that can be told without a look-up (F-40). Its host may be neither
 * this machine by name nor an address that is not public, however spelled; any other name is theirs to resolve.
 */
export function judgeUnresolved(raw: string): UrlVerdict {
  const judged = judgeUrl(raw)
  if (!judged.ok || isLoopbackName(judged.host)) return { ok: false }
  const isPrivate = parseAddress(judged.host) !== undefined && classifyLiteral(judged.host) !== 'public'
  return isPrivate ? { ok: false } : judged
}

/** C0 controls, DEL and backslash: parsers disagree about each of them. */
export function hasForbiddenCharacter(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x20 || code === 0x7f || code === 0x5c) return true
  }
  return false
}

export type JudgeHop = (raw: string, signal: AbortSignal) => Promise<HopVerdict>

/**
 * The guard of every outgoing request whose URL a model, a page or a tenant can choose (WM-87). One look-up a hop, every
 * answer judged, the first one pinned.
 */
export function openGuard(resolve: Resolve, options: GuardOptions = {}): JudgeHop {
  const classify = addressClassifier(options)
  const allowed = new Set((options.allowedHosts ?? []).flatMap((host) => normaliseHost(host) ?? []))
  const mayReach = (address: string): boolean => {
    const kind = classify(address)
    switch (kind) {
      case 'public':
        return true
      case 'loopback':
      case 'private':
        return options.reach?.[kind] === true
      case 'special':
        return false
      default:
        return kind satisfies never
    }
  }

  return async (raw, signal) => {
    const judged = judgeUrl(raw)
    if (!judged.ok) return { ok: false, why: 'disallowed' }
    const { url, host } = judged
    const trusted = allowed.has(host)
    if (isLoopbackName(host) && !trusted && !options.reach?.loopback) return { ok: false, why: 'disallowed' }
    const answer = parseAddress(host) ? [host] : await resolve(host, signal)
    const addresses = [...answer].sort((a, b) => Number(a.includes(':')) - Number(b.includes(':')))
    const [address] = addresses
    if (address === undefined) return { ok: false, why: 'unresolvable' }
    if (!trusted && !addresses.every(mayReach)) return { ok: false, why: 'disallowed' }
    return { ok: true, hop: { url, host, port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80), address } }
  }
}

const isLoopbackName = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost')
