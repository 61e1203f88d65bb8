/** Words of a text as both sides of a comparison see them. */
export const wordsIn = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

/** A run of words that both sides have. */
interface Run {
  ours: number
  theirs: number
  length: number
}

/** Words in a row that are no accident. */
const TELLING_RUN = 3

/**
 * How much of each block is main content, from 0 to 1: the blocks' words, in the order of the page, are matched with the
 * reviewed text by the longest runs that both have, and before and after those in the same way. A block that occurs more
 * often on the page than in the text is content as often as in the text.
 */
export function label(blocks: string[][], reviewed: string[]): Float32Array {
  const all = blocks.flat()
  const runAt = new Int32Array(all.length)
  for (const { ours, length } of commonRuns(all, reviewed)) runAt.fill(length, ours, ours + length)
  const out = new Float32Array(blocks.length)
  const text = ` ${reviewed.join(' ')} `
  const said = new Map<string, number>()
  let at = 0
  for (const [index, words] of blocks.entries()) {
    const runs = runAt.subarray(at, at + words.length)
    at += words.length
    if (words.length === 0) continue
    const isWhole = runs.every((run) => run > 0)
    let found = isWhole ? words.length : runs.filter((run) => run >= TELLING_RUN).length
    if (isWhole && words.length <= 2 && (runs[0] as number) < TELLING_RUN) {
      const isBeside = (runAt[at - words.length - 1] ?? 0) > 0 || (runAt[at] ?? 0) > 0
      found = isBeside ? words.length : words.length / 2
    }
    out[index] = found / words.length
    if (words.length < TELLING_RUN) continue
    const sentence = ` ${words.join(' ')} `
    // What stands elsewhere in the text was moved by the reviewer.
    if (out[index] < 0.5 && words.length > 4 && text.includes(sentence)) out[index] = 1
    if (out[index] <= 0.5) continue
    const before = said.get(sentence) ?? 0
    if (before > 0 && occurrences(text, sentence) <= before) out[index] = 0
    said.set(sentence, before + 1)
  }
  return out
}

function occurrences(text: string, part: string): number {
  let count = 0
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length - 1)) count++
  return count
}

function commonRuns(ours: string[], theirs: string[]): Run[] {
  const numbers = new Map<string, number>()
  const places: number[][] = []
  for (const [at, word] of theirs.entries()) {
    const number = numbers.get(word) ?? numbers.size
    if (number === numbers.size) {
      numbers.set(word, number)
      places.push([])
    }
    places[number]?.push(at)
  }
  const words = Int32Array.from(ours, (word) => numbers.get(word) ?? -1)
  const runs: Run[] = []
  const parts = [{ from: 0, to: ours.length, low: 0, high: theirs.length }]
  let lengths = new Int32Array(theirs.length + 1)
  let next = new Int32Array(theirs.length + 1)
  for (let part = parts.pop(); part; part = parts.pop()) {
    const { from, to, low, high } = part
    const best: Run = { ours: 0, theirs: 0, length: 0 }
    let filled: number[] = []
    for (let at = from; at < to; at++) {
      const made: number[] = []
      const number = words[at] as number
      for (const place of number < 0 ? [] : (places[number] as number[])) {
        if (place < low) continue
        if (place >= high) break
        const length = (place > low ? (lengths[place] as number) : 0) + 1
        next[place + 1] = length
        made.push(place + 1)
        if (length > best.length) Object.assign(best, { ours: at - length + 1, theirs: place - length + 1, length })
      }
      for (const place of filled) lengths[place] = 0
      ;[lengths, next] = [next, lengths]
      filled = made
    }
    for (const place of filled) lengths[place] = 0
    if (best.length === 0) continue
    runs.push(best)
    if (from < best.ours && low < best.theirs) parts.push({ from, to: best.ours, low, high: best.theirs })
    const after = best.ours + best.length
    const behind = best.theirs + best.length
    if (after < to && behind < high) parts.push({ from: after, to, low: behind, high })
  }
  return runs
}
