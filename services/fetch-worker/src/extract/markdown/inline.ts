import { codeSpan, escapeBrackets, escapeDestination, escapeLineStart, escapeText } from './escape.ts'

/** A line's parts, in order, before it is known where its blanks belong. */
type Token =
  | { type: 'text'; text: string }
  | { type: 'code'; text: string }
  | { type: 'image'; url: string; alt: string }
  /** Something written as it is. */
  | { type: 'verbatim'; markdown: string }
  | Opening
  | { type: 'close'; mark: Mark }
  | { type: 'end-link' }
  | { type: 'break' }
  /** A block's end inside a table cell, where there are no blocks. */
  | { type: 'divide' }

type Opening = { type: 'open'; mark: Mark } | { type: 'link'; url: string; label: string }

export type Mark = 'strong' | 'emphasis' | 'strike'

export interface Line {
  add(token: Token): void
  /** Nothing more is taken: what is there is more than anybody will be shown. */
  isFull(): boolean
  /** Takes the parts out as Markdown; marks and links still open are closed, and opened again in the next line. */
  take(form: LineForm): string
}

export interface LineForm {
  inTable: boolean
  /** A heading or a cell: breaks become blanks. */
  isSingle: boolean
}

export function openLine(maxCharacters: number): Line {
  let tokens: Token[] = []
  const open: Token[] = []
  let characters = 0
  return {
    add(token) {
      if (token.type === 'text' || token.type === 'code') {
        const room = maxCharacters - characters
        if (room <= 0) return
        tokens.push(token.text.length > room ? { ...token, text: token.text.slice(0, room) } : token)
        characters += token.text.length
        return
      }
      tokens.push(token)
      characters++
      if (token.type === 'open' || token.type === 'link') open.push(token)
      else if (token.type === 'close') drop(open, (each) => each.type === 'open' && each.mark === token.mark)
      else if (token.type === 'end-link') drop(open, (each) => each.type === 'link')
    },
    isFull: () => characters >= maxCharacters,
    take(form) {
      const written = new Set<Token>()
      const markdown = assemble(tokens, form, written)
      // A link that spans blocks is written once: in the first of them that has text.
      tokens = open.filter((token) => token.type !== 'link' || !written.has(token))
      open.splice(0, open.length, ...tokens)
      characters = 0
      return markdown
    },
  }
}

function drop(list: Token[], test: (token: Token) => boolean): void {
  const at = list.findLastIndex(test)
  if (at >= 0) list.splice(at, 1)
}

interface Opened {
  token: Opening
  /** Where its opening stands among the pieces; undefined until something in it is written. */
  piece: number | undefined
}

/**
 * Blanks collapse, and move out of marks and links; a mark whose ends would not be read as such is left out (CommonMark
 * 6.2), as are marks and links around nothing. `written` takes the links that are not.
 */
function assemble(tokens: Token[], { inTable, isSingle }: LineForm, written: Set<Token>): string {
  const pieces: string[] = []
  const marks: { from: number; to: number }[] = []
  const opened: Opened[] = []
  let gap: '' | ' ' | '\n' | ' / ' = ''

  const write = (markdown: string): void => {
    if (pieces.length > 0 && gap !== '') pieces.push(gap === '\n' ? '  \n' : gap)
    gap = ''
    for (const each of opened) {
      if (each.piece !== undefined) continue
      each.piece = pieces.length
      pieces.push(each.token.type === 'link' ? '[' : '')
    }
    pieces.push(markdown)
  }
  const close = (each: Opened): void => {
    const { token, piece } = each
    if (token.type === 'link') {
      if (piece === undefined && token.label !== '') {
        opened.push(each)
        write(escapeText(token.label, inTable))
        opened.pop()
      }
      if (each.piece === undefined) return
      written.add(token)
      for (let at = each.piece + 1; at < pieces.length; at++) {
        if (isPlain.has(at)) pieces[at] = escapeBrackets(pieces[at] ?? '')
      }
      pieces.push(`](${escapeDestination(token.url, inTable)})`)
    } else if (piece !== undefined) {
      const delimiter = delimiters[token.mark]
      marks.push({ from: piece, to: pieces.length })
      pieces[piece] = delimiter
      pieces.push(delimiter)
    }
  }
  const isPlain = new Set<number>()
  const isInLink = (): boolean => opened.some(({ token }) => token.type === 'link')

  for (const token of tokens) {
    switch (token.type) {
      case 'text': {
        const text = token.text
        const words = text.trim()
        if (words === '') {
          if (text !== '' && gap === '') gap = ' '
          break
        }
        if (gap === '' && /^\s/.test(text)) gap = ' '
        write(escapeText(words.replace(/\s+/g, ' '), inTable, isInLink()))
        isPlain.add(pieces.length - 1)
        if (/\s$/.test(text)) gap = ' '
        break
      }
      case 'code': {
        const span = codeSpan(token.text, inTable)
        if (span !== '') write(span)
        break
      }
      case 'verbatim':
        write(token.markdown)
        break
      case 'image':
        write(`![${escapeBrackets(escapeText(token.alt, inTable))}](${escapeDestination(token.url, inTable)})`)
        break
      case 'break':
        gap = isSingle || inTable ? ' ' : '\n'
        break
      case 'divide':
        if (gap !== '\n') gap = ' / '
        break
      case 'open':
        if (!opened.some((each) => each.token.type === 'open' && each.token.mark === token.mark))
          opened.push({ token, piece: undefined })
        break
      case 'link':
        opened.push({ token, piece: undefined })
        break
      case 'close':
      case 'end-link': {
        const at = opened.findLastIndex(({ token: each }) =>
          token.type === 'close' ? each.type === 'open' && each.mark === token.mark : each.type === 'link',
        )
        if (at < 0) break
        const inner = opened.splice(at)
        for (const each of inner.reverse()) close(each)
        // What was opened inside and is not closed yet goes on behind it.
        for (const each of inner.slice(0, -1).reverse()) opened.push({ token: each.token, piece: undefined })
        break
      }
      default:
        token satisfies never
    }
  }
  for (const each of opened.splice(0).reverse()) close(each)
  keepReadableMarks(pieces, marks)
  return pieces.join('').split('\n').map(escapeLineStart).join('\n').trim()
}

const delimiters: Record<Mark, string> = { strong: '**', emphasis: '*', strike: '~~' }
const isPunctuation = (character: string): boolean => /[\p{P}\p{S}]/u.test(character)

/** Empties delimiters that would stand in the text as they are, and tells emphasis from a strong neighbour. */
function keepReadableMarks(pieces: string[], marks: { from: number; to: number }[]): void {
  const neighbour = (at: number, step: 1 | -1): string => {
    let next = at + step
    while (pieces[next] === '') next += step
    const piece = pieces[next] ?? ' '
    return (step === 1 ? piece.match(/^./su)?.[0] : piece.match(/.$/su)?.[0]) ?? ' '
  }
  const before = (at: number): string => neighbour(at, -1)
  const after = (at: number): string => neighbour(at, 1)
  for (const { from, to } of marks) {
    const opens = readsAsEdge(before(from), after(from))
    const closes = readsAsEdge(after(to), before(to))
    if (!opens || !closes) pieces[from] = pieces[to] = ''
    else if (pieces[from] === '*' && !/[\p{L}\p{N}]/u.test(before(from) + after(to))) pieces[from] = pieces[to] = '_'
  }
}

const readsAsEdge = (outer: string, inner: string): boolean =>
  !/\s/.test(inner) && (!isPunctuation(inner) || /\s/.test(outer) || isPunctuation(outer))
