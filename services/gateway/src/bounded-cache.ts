export interface BoundedCache<V> {
  get(key: string): V | undefined
  set(key: string, value: V): void
  deleteWhere(test: (value: V) => boolean): void
  clear(): void
  readonly size: number
}

/** Keeps at most `most` values, each for `forMs`; when full, what was not asked for longest goes first. */
export function boundedCache<V>(most: number, forMs: number, now: () => number = Date.now): BoundedCache<V> {
  const entries = new Map<string, { value: V; until: number }>()
  return {
    get(key) {
      const entry = entries.get(key)
      if (!entry) return undefined
      entries.delete(key)
      if (entry.until <= now()) return undefined
      // a Map keeps the order of insertion: what is used moves to the end
      entries.set(key, entry)
      return entry.value
    },
    set(key, value) {
      entries.delete(key)
      if (entries.size >= most) entries.delete(entries.keys().next().value as string)
      entries.set(key, { value, until: now() + forMs })
    },
    deleteWhere(test) {
      for (const [key, { value }] of entries) if (test(value)) entries.delete(key)
    },
    clear: () => entries.clear(),
    get size() {
      return entries.size
    },
  }
}
