import { clipBytes, type SearchHit, TOOL_RESULT_BYTES } from '@tollgate/contracts'

const CUT = '\n\n[Further results were left out: the 50 KiB limit of a tool result is reached.]'

export interface RenderedHits {
  text: string
  /** Hits the text holds; only these may be cited, and only these use up numbers (S-45, R-44). */
  shown: SearchHit[]
}

/** Search results as the model reads them, numbered from `first` (S-45..S-47). Whole results are left out when they do not fit. */
export function renderHits(hits: SearchHit[], first: number): RenderedHits {
  const shown: SearchHit[] = []
  let text = ''
  for (const hit of hits) {
    const entry = renderHit(hit, first + shown.length)
    const grown = text === '' ? entry : `${text}\n\n${entry}`
    if (shown.length > 0 && Buffer.byteLength(grown) + Buffer.byteLength(CUT) > TOOL_RESULT_BYTES) {
      return { text: text + CUT, shown }
    }
    shown.push(hit)
    text = clipBytes(grown, TOOL_RESULT_BYTES, CUT)
  }
  return { text, shown }
}

function renderHit({ title, url, text, date }: SearchHit, number: number): string {
  const head = `[${number}] ${oneLine(title) || url}${date === undefined ? '' : ` (${date})`}\n${url}`
  return text === '' ? head : `${head}\n${text}`
}

/** A title with a line break in it could pass itself off as another result. */
const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim()
