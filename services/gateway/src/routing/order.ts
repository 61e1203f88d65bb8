export interface Weighted {
  weight?: number | undefined
}

/**
 * The order in which candidates are tried. One without a weight keeps its place; those with one that stand side by side
 * share theirs: each comes first as often as its part of their weights says.
 */
export function drawOrder<C extends Weighted>(candidates: readonly C[], random: () => number): C[] {
  const order: C[] = []
  let group: C[] = []
  const drawGroup = () => {
    while (group.length > 0) {
      const [drawn] = group.splice(drawOne(group, random), 1)
      if (drawn) order.push(drawn)
    }
  }
  for (const candidate of candidates) {
    if (candidate.weight !== undefined) {
      group.push(candidate)
      continue
    }
    drawGroup()
    order.push(candidate)
    group = []
  }
  drawGroup()
  return order
}

/** The place of one, drawn by weight; the weights of a group are positive. */
function drawOne(group: readonly Weighted[], random: () => number): number {
  let left = random() * group.reduce((sum, { weight = 0 }) => sum + weight, 0)
  for (const [at, { weight = 0 }] of group.entries()) {
    left -= weight
    if (left < 0) return at
  }
  return group.length - 1
}
