import { parseHtml } from './parse.ts'
import { textOf } from './tree.ts'

const MAX_CHARACTERS = 20_000
const BUDGET_MS = 50

/** The text of a value that may hold HTML, as those in feeds and JSON-LD do, on one line. */
export const plainText = (value: string): string =>
  /[<&]/.test(value)
    ? textOf(parseHtml(value.slice(0, MAX_CHARACTERS), BUDGET_MS), 0)
    : value.replace(/\s+/g, ' ').trim()
