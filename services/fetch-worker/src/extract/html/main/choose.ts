/**
 * The likelihood from which on blocks are taken, so that the words taken agree best (F1) with the words wanted. Were blocks
 * right or wrong one by one, a page's many unlikely blocks would add up to something worth taking; in truth they stand or
 * fall together, as a list of related pages does. So two expectations are mixed: one in which each block is on its own, and
 * one in which a single draw decides for all of them, each block being content when it is likelier than the draw.
 */
export function chooseLevel(likely: Float64Array, words: readonly number[]): number {
  const order = Int32Array.from(likely, (_, at) => at).sort((a, b) => (likely[b] as number) - (likely[a] as number))
  const wanted = wantedBy(order, likely, words)
  let expected = 0
  for (let at = 0; at < likely.length; at++) expected += (likely[at] as number) * (words[at] as number)
  let taken = 0
  let common = 0
  let level = 1
  let best = -1
  let lastTried = Number.POSITIVE_INFINITY
  for (let index = 0; index < order.length; index++) {
    const at = order[index] as number
    const value = likely[at] as number
    taken += words[at] as number
    common += value * (words[at] as number)
    const next = likely[order[index + 1] as number]
    // Equal likelihoods are taken together, and steps too small to matter are not tried.
    if (next !== undefined && (next === value || lastTried - value < SMALLEST_STEP)) continue
    lastTried = value
    const alone = (2 * common) / Math.max(1e-9, taken + expected)
    const agreement = TOGETHER * agreementOf(taken, wanted) + (1 - TOGETHER) * alone
    if (agreement <= best) continue
    best = agreement
    level = value
  }
  return level
}

/** How much of the second there is in the mix: what did best on pages not trained on. */
const TOGETHER = 0.55
const DRAWS = 64
const SMALLEST_STEP = 1 / 512

/** By draw: the words that are wanted when blocks likelier than it are content. */
function wantedBy(order: Int32Array, likely: Float64Array, words: readonly number[]): Float64Array {
  const out = new Float64Array(DRAWS)
  let count = 0
  let index = 0
  for (let draw = DRAWS - 1; draw >= 0; draw--) {
    const least = (draw + 0.5) / DRAWS
    for (; index < order.length && (likely[order[index] as number] as number) > least; index++)
      count += words[order[index] as number] as number
    out[draw] = count
  }
  return out
}

/** Mean F1 over the draws when the likeliest blocks of `taken` words are taken: of two such sets one holds the other. */
function agreementOf(taken: number, wanted: Float64Array): number {
  let sum = 0
  for (const count of wanted) sum += (2 * Math.min(taken, count)) / Math.max(1e-9, taken + count)
  return sum / DRAWS
}
