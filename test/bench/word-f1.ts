/** Words that both texts have, as a multiset: the harmonic mean of how many of each text's words the other has. */
export function wordF1(extracted: string, reviewed: string): number {
  const found = wordsOf(extracted)
  const wanted = wordsOf(reviewed)
  const left = new Map<string, number>()
  for (const word of wanted) left.set(word, (left.get(word) ?? 0) + 1)
  let common = 0
  for (const word of found) {
    const count = left.get(word) ?? 0
    if (count === 0) continue
    left.set(word, count - 1)
    common++
  }
  return found.length + wanted.length === 0 ? 1 : (2 * common) / (found.length + wanted.length)
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

/** Markdown without where its links and images lead: addresses are no words of a page. */
export const withoutTargets = (markdown: string): string =>
  markdown.replace(/\]\((?:\\.|[^()\s\\]|\([^()\s]*\))*\)/g, '] ')
