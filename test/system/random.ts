/** Numbers from 0 to 1 that follow from a seed (mulberry32), so that a run that failed can be run again. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The seed of this run: the one in TEST_SEED, or a new one; printed either way. */
export function seedOf(test: string): number {
  const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 32))
  console.log(`${test}: TEST_SEED=${seed}`)
  return seed
}
