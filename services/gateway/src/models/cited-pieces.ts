/** A page, and the words of a text that rest on it. */
export interface Cited {
  url: string
  title: string
  start: number
  end: number
}

export interface CitedPiece {
  text: string
  cited: Cited[]
}

/**
 * A text in pieces, each with the pages that all of it rests on, for clients that know citations of whole blocks. The
 * pieces joined are the text. Words that several citations share are in one piece; a citation of no words is of all.
 */
export function citedPieces(text: string, citations: readonly Cited[]): CitedPiece[] {
  const spans: { start: number; end: number; cited: Cited[] }[] = []
  const placed = citations.map((cited) => ({ cited, ...placeOf(cited, text) }))
  for (const { cited, start, end } of placed.toSorted((one, other) => one.start - other.start)) {
    const last = spans.at(-1)
    if (last === undefined || start >= last.end) spans.push({ start, end, cited: [cited] })
    else {
      last.cited.push(cited)
      last.end = Math.max(last.end, end)
    }
  }
  const pieces: CitedPiece[] = []
  let at = 0
  for (const { start, end, cited } of spans) {
    if (start > at) pieces.push({ text: text.slice(at, start), cited: [] })
    pieces.push({ text: text.slice(start, end), cited })
    at = end
  }
  if (at < text.length) pieces.push({ text: text.slice(at), cited: [] })
  return pieces
}

function placeOf({ start, end }: Cited, text: string): { start: number; end: number } {
  const from = whole(text, Math.max(0, start))
  const to = whole(text, Math.min(end, text.length))
  return from < to ? { start: from, end: to } : { start: 0, end: text.length }
}

/** Never between the halves of a character. */
const whole = (text: string, at: number): number =>
  at > 0 && at < text.length && text.codePointAt(at - 1)! > 0xffff ? at + 1 : at
