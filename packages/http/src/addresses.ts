/**
 * What an IP address is to a caller who must not reach into our own network. `special` is never reachable by any
 * setting: link-local and cloud metadata, multicast, documentation, reserved and everything not known to be public.
 */
export type AddressClass = 'public' | 'private' | 'loopback' | 'special'

export interface Address {
  family: 4 | 6
  value: bigint
}

/** An address range in its usual notation; `10.0.0.1` alone is a range of one. */
export type Cidr = string

type Range = [block: Cidr, verdict: AddressClass]

/** IANA's special-purpose IPv4 registry and what else is not ordinary unicast (WM-82); the rest is public. */
const V4: Range[] = [
  ['0.0.0.0/8', 'special'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'private'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'special'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'special'],
  ['192.0.2.0/24', 'special'],
  ['192.88.99.0/24', 'special'],
  ['192.168.0.0/16', 'private'],
  ['198.18.0.0/15', 'special'],
  ['198.51.100.0/24', 'special'],
  ['203.0.113.0/24', 'special'],
  ['224.0.0.0/4', 'special'],
  ['240.0.0.0/4', 'special'],
]

/** The same for IPv6. Global unicast is 2000::/3 less these; whatever lies outside it is not public. */
const V6: Range[] = [
  ['::1/128', 'loopback'],
  ['fc00::/7', 'private'],
  ['2001::/23', 'special'],
  ['2001:db8::/32', 'special'],
  ['3fff::/20', 'special'],
]

/** Endpoints of clouds that bear public or private-looking addresses and answer only inside (BR-115). */
export const cloudEndpoints: Cidr[] = ['168.63.129.16', '100.100.100.200', 'fd00:ec2::254', 'fd20:ce::254']

const WELL_KNOWN_NAT64 = '64:ff9b::/96'

export interface AddressRules {
  /** Refused whatever they are. */
  denied?: Cidr[]
  /** Further /96 prefixes that carry an IPv4 address in their last 32 bits (RFC 6052). */
  nat64Prefixes?: Cidr[]
}

export type Classify = (address: string) => AddressClass

/** Verdicts come from the tables above alone, never from the runtime's own idea of what is private (WM-82). */
export function addressClassifier({ denied = cloudEndpoints, nat64Prefixes = [] }: AddressRules = {}): Classify {
  const v4 = V4.map(compile)
  const v6 = V6.map(compile)
  const extra = denied.map((block) => compile([block, 'special']))
  const global = compile(['2000::/3', 'public'])
  const mapped = compile(['::ffff:0:0/96', 'public'])
  const sixToFour = compile(['2002::/16', 'public'])
  const teredo = compile(['2001::/32', 'public'])
  const nat64 = [WELL_KNOWN_NAT64, ...nat64Prefixes].map((block) => compile([block, 'public']))

  const classify = (address: Address): AddressClass => {
    if (extra.some((range) => holds(range, address))) return 'special'
    if (address.family === 4) return v4.find((range) => holds(range, address))?.verdict ?? 'public'
    const bits = address.value
    if (holds(mapped, address)) return inner(bits)
    if (nat64.some((range) => holds(range, address))) return tunnelled(inner(bits))
    if (holds(sixToFour, address)) return tunnelled(inner(bits >> 80n))
    if (holds(teredo, address)) {
      // RFC 4380: the server's address stands plainly in bits 32 to 63, the client's inverted in the last 32.
      return inner(bits >> 64n) === 'public' ? tunnelled(inner(~bits)) : 'special'
    }
    return v6.find((range) => holds(range, address))?.verdict ?? (holds(global, address) ? 'public' : 'special')
  }
  const inner = (bits: bigint): AddressClass => classify({ family: 4, value: BigInt.asUintN(32, bits) })
  const tunnelled = (verdict: AddressClass): AddressClass => (verdict === 'public' ? 'public' : 'special')

  return (text) => {
    const address = parseAddress(text)
    return address ? classify(address) : 'special'
  }
}

/** Dotted-quad IPv4, or IPv6 in any spelling of RFC 4291; with a zone, or anything else: undefined. */
export function parseAddress(text: string): Address | undefined {
  const v4 = parseV4(text)
  if (v4 !== undefined) return { family: 4, value: v4 }
  const v6 = parseV6(text)
  return v6 === undefined ? undefined : { family: 6, value: v6 }
}

/** One spelling for each address, so that two can be compared as text. */
export function sameAddress(a: string, b: string): boolean {
  const [left, right] = [parseAddress(a), parseAddress(b)]
  return left !== undefined && right !== undefined && plain(left) === plain(right)
}

/** A mapped IPv4 address is the IPv4 address: a dual-stack socket shows its peer so. */
function plain({ family, value }: Address): string {
  const isMapped = family === 6 && value >> 32n === 0xffffn
  return `${isMapped ? 4 : family}/${isMapped ? BigInt.asUintN(32, value) : value}`
}

function parseV4(text: string): bigint | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)
  if (!match) return undefined
  const octets = match.slice(1).map(Number)
  if (octets.some((octet) => octet > 255)) return undefined
  return octets.reduce((sum, octet) => (sum << 8n) | BigInt(octet), 0n)
}

function parseV6(text: string): bigint | undefined {
  const [head, tail, ...more] = text.split('::')
  if (head === undefined || more.length > 0) return undefined
  const left = pieces(head, tail === undefined)
  const right = tail === undefined ? [] : pieces(tail, true)
  if (!left || !right) return undefined
  const missing = 8 - left.length - right.length
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined
  return [...left, ...Array<bigint>(missing).fill(0n), ...right].reduce((sum, piece) => (sum << 16n) | piece, 0n)
}

/** 16-bit pieces between colons; the last of the whole address may be a dotted quad, which makes two. */
function pieces(text: string, isEnd: boolean): bigint[] | undefined {
  if (text === '') return []
  const out: bigint[] = []
  const parts = text.split(':')
  for (const [index, part] of parts.entries()) {
    const v4 = isEnd && index === parts.length - 1 ? parseV4(part) : undefined
    if (v4 !== undefined) out.push(v4 >> 16n, v4 & 0xffffn)
    else if (/^[0-9a-f]{1,4}$/i.test(part)) out.push(BigInt(`0x${part}`))
    else return undefined
  }
  return out.length > 8 ? undefined : out
}

interface Compiled {
  family: 4 | 6
  prefix: bigint
  shift: bigint
  verdict: AddressClass
}

function compile([block, verdict]: Range): Compiled {
  const [text = '', length] = block.split('/')
  const address = parseAddress(text)
  const size = address?.family === 4 ? 32 : 128
  const bits = length === undefined ? size : Number(length)
  if (!address || !Number.isInteger(bits) || bits < 0 || bits > size)
    throw new TypeError(`not an address block: ${block}`)
  const shift = BigInt(size - bits)
  return { family: address.family, prefix: address.value >> shift, shift, verdict }
}

const holds = (range: Compiled, address: Address): boolean =>
  range.family === address.family && address.value >> range.shift === range.prefix
