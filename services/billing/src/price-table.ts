import type { PerMillion, PriceKey } from '@tollgate/contracts'

export interface Price {
  input: PerMillion
  output: PerMillion
  cacheRead: PerMillion | null
  cacheWrite: PerMillion | null
}

/** A price, and from when until when it counts, in epoch milliseconds. */
export interface PriceVersion extends PriceKey {
  price: Price
  effectiveAt: number
  deletedAt: number
}

/** When a request began and ended. */
export interface Span {
  beganAt: Date
  endedAt: Date
}

/**
 * Prices as of the time of a request. What had no price when the request began takes the one in force at its end: the
 * clocks of who wrote the price and of who served the request need not agree to the millisecond.
 */
export interface Prices {
  /** The first key that has a price: nothing but the very keys prices a tool (P-09). */
  ofTool(keys: PriceKey[], span: Span): Price | undefined
  /** The first key that has a price; else a row `<provider>:*`, in the same order. */
  ofModel(keys: PriceKey[], span: Span): Price | undefined
}

export function priceTable(versions: readonly PriceVersion[]): Prices {
  const byKey = new Map<string, PriceVersion[]>()
  for (const version of [...versions].sort((a, b) => b.effectiveAt - a.effectiveAt)) {
    const place = placeOf(version)
    const same = byKey.get(place)
    if (same) same.push(version)
    else byKey.set(place, [version])
  }

  const at = (key: PriceKey, time: number): Price | undefined =>
    byKey.get(placeOf(key))?.find(({ effectiveAt, deletedAt }) => effectiveAt <= time && time < deletedAt)?.price

  function first(keys: PriceKey[], time: number): Price | undefined {
    for (const key of keys) {
      const price = at(key, time)
      if (price) return price
    }
    return undefined
  }

  const model = (keys: PriceKey[], time: number) => first(keys, time) ?? first(keys.flatMap(wildcard), time)

  return {
    ofTool: (keys, { beganAt, endedAt }) => first(keys, beganAt.getTime()) ?? first(keys, endedAt.getTime()),
    ofModel: (keys, { beganAt, endedAt }) => model(keys, beganAt.getTime()) ?? model(keys, endedAt.getTime()),
  }
}

/** No key of one kind is ever found for another (P-04). */
const placeOf = ({ kind, key }: PriceKey): string => `${kind} ${key}`

function wildcard({ kind, key }: PriceKey): PriceKey[] {
  const colon = key.indexOf(':')
  return kind === 'model' && colon > 0 ? [{ kind, key: `${key.slice(0, colon)}:*` }] : []
}
