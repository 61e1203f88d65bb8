import { type Span, trimmed } from './lines.ts'

/** How often each word stands in a document. */
export type Vocabulary = ReadonlyMap<string, number>

const WORD = /[\p{L}\p{N}]+(?:[-‐][\p{L}\p{N}]+)*/gu
const MAX_WORDS = 50_000

/** The words of a document's lines; what a line begins or ends with is left out when it may be half a word. */
export function countWords(lines: Iterable<string>): Vocabulary {
  const words = new Map<string, number>()
  for (const line of lines) {
    if (words.size > MAX_WORDS) break
    const found = line.match(WORD) ?? []
    const from = /^\p{Ll}/u.test(line) ? 1 : 0
    for (const word of found.slice(from, endsInHyphen(line) ? -1 : undefined)) {
      const key = word.toLowerCase().replace('‐', '-')
      words.set(key, (words.get(key) ?? 0) + 1)
    }
  }
  return words
}

/** Lines as one text: a word that was parted at a line's end is whole again, a line that was broken on purpose stays broken. */
export function joinLines(lines: Span[][], breaks: boolean[], words: Vocabulary): Span[] {
  const out: Span[] = []
  for (const [at, line] of lines.entries()) {
    const last = out.at(-1)
    const [first] = line
    if (!first) continue
    if (!last) out.push(...line.map((span) => ({ ...span })))
    else {
      const isOneLink = last.link !== undefined && last.link === first.link
      const glue =
        isOneLink && isUrlPart(last.text)
          ? { text: '', drops: 0 }
          : between(last.text, first.text, breaks[at - 1] === true, words)
      if (glue.drops > 0) last.text = last.text.slice(0, -glue.drops)
      append(out, isOneLink ? { text: glue.text, link: first.link as string } : { text: glue.text }, ...line)
    }
  }
  return trimmedLines(out)
}

/** An address that goes on in the next line. */
const isUrlPart = (text: string): boolean => /^(?:https?:|www\.)\S*$/i.test(text)

function append(out: Span[], ...spans: Span[]): void {
  for (const span of spans) {
    const last = out.at(-1)
    if (span.text === '') continue
    if (last && last.link === span.link) last.text += span.text
    else out.push({ ...span })
  }
}

const endsInHyphen = (text: string): boolean => /[-\u00ad‐]$/.test(text.slice(-1))

const cjk = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uff60]/u

/** What stands between two lines, and how many characters of the first one's end go. */
export function between(
  before: string,
  after: string,
  isBroken: boolean,
  words: Vocabulary,
): { text: string; drops: number } {
  if (isBroken) return { text: '\n', drops: 0 }
  if (cjk.test(before.at(-1) ?? '') && cjk.test(after[0] ?? '')) return { text: '', drops: 0 }
  if (before.endsWith('\u00ad')) return { text: '', drops: 1 }
  if (!endsInHyphen(before)) return { text: ' ', drops: 0 }
  const head = /([\p{L}\p{N}]+)[-‐]$/u.exec(before.slice(-40))?.[1]?.toLowerCase()
  const tail = /^[\p{L}\p{N}]+/u.exec(after)?.[0]
  if (head === undefined || tail === undefined) return { text: ' ', drops: 0 }
  return isOneWord(head, tail, words) ? { text: '', drops: 1 } : { text: '', drops: 0 }
}

/** Whether a hyphen at a line's end is there only for the line's sake: the document's other words tell, and else case does. */
function isOneWord(head: string, tail: string, words: Vocabulary): boolean {
  if (!/^\p{Ll}/u.test(tail) || /\p{N}$/u.test(head)) return false
  const count = (word: string): number => words.get(word) ?? 0
  const [whole, compound] = [count(head + tail), count(`${head}-${tail}`)]
  if (whole !== compound) return whole > compound
  return head.length > 1 && !(count(head) > 0 && count(tail) > 0)
}

const trimmedLines = (spans: Span[]): Span[] => {
  const out: Span[] = []
  for (const { text, link } of spans) {
    if (link !== undefined) {
      out.push(...trimmed([{ text, link }]))
      continue
    }
    const plain = text
      .replace(/[^\S\n\t]+/g, ' ')
      .replace(/ ?\n ?/g, '\n')
      .replaceAll('\u00ad', '')
    if (plain !== '') out.push({ text: plain })
  }
  return out
}
