/** Characters that mean something to CommonMark or GFM anywhere in a line. */
const special = /[\\`*_[\]<&~|]/

const isWordCharacter = (character: string | undefined): boolean =>
  character !== undefined && /[\p{L}\p{N}]/u.test(character)
const isSpace = (character: string | undefined): boolean => character === undefined || /\s/.test(character)

/** Plain text as Markdown that reads back as that text, with no more backslashes than that takes. */
export function escapeText(text: string, inTable: boolean, inLink = false): string {
  if (!special.test(text)) return text
  const addresses = inLink ? [] : bareAddresses(text)
  let out = ''
  let address = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string
    while ((addresses[address]?.to ?? Number.POSITIVE_INFINITY) <= at) address++
    const inAddress = at >= (addresses[address]?.from ?? Number.POSITIVE_INFINITY)
    const isLeft = inAddress && (character === '_' || character === '~' || character === '*')
    out += !isLeft && needsEscape(text, at, character, inTable) ? `\\${character}` : character
  }
  return out
}

/** Addresses that stand in a text as they are: GFM links them by itself, and a backslash would become a part of them. */
const bareAddresses = (text: string): { from: number; to: number }[] =>
  /:\/\/|www\./i.test(text)
    ? [...text.matchAll(/\b(?:https?:\/\/|www\.)[^\s<>]+/gi)].map(({ 0: { length }, index }) => ({
        from: index,
        to: index + length,
      }))
    : []

function needsEscape(text: string, at: number, character: string, inTable: boolean): boolean {
  const before = text[at - 1]
  const after = text[at + 1]
  switch (character) {
    case '`':
      return true
    case '\\':
      return after === undefined || /[!-/:-@[-`{-~]/.test(after)
    case '*':
      return !(isSpace(before) && isSpace(after))
    case '_':
      return !(isWordCharacter(before) && isWordCharacter(after)) && !(isSpace(before) && isSpace(after))
    case '~':
      return before === '~' || after === '~' || isWordCharacter(before)
    case ']':
      return after === undefined || after === '(' || after === '[' || after === ':'
    case '<':
      return after === undefined || /[a-z/!?]/i.test(after)
    case '&':
      return /^&(?:[a-z][a-z0-9]{1,31}|#\d{1,7}|#x[0-9a-f]{1,6});/i.test(text.slice(at, at + 40))
    case '|':
      return inTable
    default:
      return false
  }
}

/** Brackets inside a link's text must not end it. */
export const escapeBrackets = (markdown: string): string =>
  markdown.replace(/\\.|[[\]]/g, (found) => (found.length > 1 ? found : `\\${found}`))

/** What would make a heading, list, quote, rule or underline of a line that is none. */
export function escapeLineStart(line: string): string {
  const first = line.charCodeAt(0)
  // # + - = > and digits
  if (
    first !== 0x23 &&
    first !== 0x2b &&
    first !== 0x2d &&
    first !== 0x3d &&
    first !== 0x3e &&
    !(first >= 0x30 && first <= 0x39)
  )
    return line
  if (/^(?:#{1,6}(?=\s|$)|[+-](?=\s|$)|>|=+\s*$|-[-\s]*$)/.test(line)) return `\\${line}`
  return line.replace(/^(\d{1,9})([.)])(?=\s|$)/, '$1\\$2')
}

/** A link's destination that reads back as it is. */
export function escapeDestination(url: string, inTable: boolean): string {
  const plain = url
    .replace(/[\s<>]/g, encodeURIComponent)
    .replace(/[\\&](?=[!-/:-@[-`{-~a-z#])/gi, (found) => (found === '\\' ? '%5C' : found))
  const safe = plain.replace(/&(?=#?[a-z0-9]{1,31};)/gi, '\\&')
  const balanced = hasBalancedParentheses(safe) ? safe : safe.replace(/[()]/g, '\\$&')
  return inTable ? balanced.replaceAll('|', '%7C') : balanced
}

function hasBalancedParentheses(text: string): boolean {
  let depth = 0
  for (const character of text) {
    if (character === '(' && ++depth > 30) return false
    if (character === ')' && --depth < 0) return false
  }
  return depth === 0
}

/** A code span's fence is longer than any in it; a space keeps the two apart (CommonMark 6.1). */
export function codeSpan(text: string, inTable: boolean): string {
  const content = text.replace(/\s+/g, ' ').trim()
  if (content === '') return ''
  const fence = '`'.repeat(longestRun(content) + 1)
  const padded = content.startsWith('`') || content.endsWith('`') ? ` ${content} ` : content
  return fence + (inTable ? padded.replaceAll('|', '\\|') : padded) + fence
}

export const codeFence = (content: string): string => '`'.repeat(Math.max(3, longestRun(content) + 1))

function longestRun(text: string): number {
  let longest = 0
  for (const run of text.match(/`+/g) ?? []) longest = Math.max(longest, run.length)
  return longest
}
