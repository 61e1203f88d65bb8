import type { TextItem, TextMarkedContent } from 'pdfjs-dist/types/src/display/api.d.ts'

/** Runs of text as they are drawn, put together to lines; a wider gap between two lines parts paragraphs. */
export interface PageText {
  add(items: (TextItem | TextMarkedContent)[]): void
  characters(): number
  /** Names of the fonts that were used, with how much each of them shows. */
  fonts(): ReadonlyMap<string, number>
  /** All but what was drawn in these fonts. */
  without(fonts: ReadonlySet<string>): string
}

interface Run {
  text: string
  font: string
  y: number
  height: number
  endsLine: boolean
}

/** Lines further apart than this many line heights belong to different paragraphs. */
const PARAGRAPH_GAP = 1.7

export function openPageText(): PageText {
  const runs: Run[] = []
  const fonts = new Map<string, number>()
  let characters = 0
  return {
    add(items) {
      for (const item of items) {
        if (!('str' in item)) continue
        runs.push({
          text: item.str,
          font: item.fontName,
          y: Number(item.transform[5]),
          height: item.height,
          endsLine: item.hasEOL,
        })
        characters += item.str.length
        fonts.set(item.fontName, (fonts.get(item.fontName) ?? 0) + item.str.trim().length)
      }
    },
    characters: () => characters,
    fonts: () => fonts,
    without: (left) => layOut(runs.filter(({ font, text }) => text.trim() === '' || !left.has(font))),
  }
}

function layOut(runs: Run[]): string {
  let out = ''
  let ended: Run | undefined
  let lineHeight = 0
  for (const run of runs) {
    if (ended && run.text !== '') {
      out += Math.abs(ended.y - run.y) > PARAGRAPH_GAP * Math.max(lineHeight, run.height, 1) ? '\n\n' : '\n'
      ended = undefined
      lineHeight = 0
    }
    out += run.text
    lineHeight = Math.max(lineHeight, run.height)
    if (run.endsLine) ended = run
  }
  return out.replace(/[ \t]+\n/g, '\n').trim()
}
