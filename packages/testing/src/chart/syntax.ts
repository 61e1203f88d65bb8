/** The part of Go's text/template that a Helm chart of ours may use, as a tree. */
export type Node =
  | { kind: 'text'; text: string }
  | { kind: 'action'; pipe: Pipe }
  | { kind: 'block'; word: 'if' | 'with' | 'range'; pipe: Pipe; body: Node[]; otherwise: Node[] }

/** `$a, $b := command | command` */
export interface Pipe {
  names: string[]
  declares: boolean
  commands: Term[][]
}

export type Term =
  | { kind: 'literal'; value: unknown }
  | { kind: 'path'; base: string | Pipe; fields: string[] }
  | { kind: 'call'; name: string }

interface Open {
  nodes: Node[]
  block?: Extract<Node, { kind: 'block' }>
}

/** Parses one template file; the blocks it defines are added to `defined`. */
export function parseTemplate(source: string, defined: Map<string, Node[]>): Node[] {
  const root: Node[] = []
  const open: Open[] = [{ nodes: root }]
  let at = 0
  let trimNext = false
  const top = (): Open => {
    const last = open.at(-1)
    if (!last) throw new Error('an {{ end }} too many')
    return last
  }
  for (const match of source.matchAll(/\{\{(-)?\s*(\/\*[\s\S]*?\*\/|[\s\S]*?)\s*(-)?\}\}/g)) {
    const [all, trimBefore, action = '', trimAfter] = match
    let text = source.slice(at, match.index)
    if (trimNext) text = text.trimStart()
    if (trimBefore) text = text.trimEnd()
    at = match.index + all.length
    trimNext = trimAfter !== undefined
    if (text) top().nodes.push({ kind: 'text', text })
    if (!action.startsWith('/*')) takeAction(action, open, top, defined)
  }
  const tail = source.slice(at)
  root.push({ kind: 'text', text: trimNext ? tail.trimStart() : tail })
  if (open.length !== 1) throw new Error('a block is not closed')
  return root
}

function takeAction(action: string, open: Open[], top: () => Open, defined: Map<string, Node[]>): void {
  const [, word = '', rest = ''] = /^(if|with|range|else|end|define)\b\s*([\s\S]*)$/.exec(action) ?? []
  switch (word) {
    case 'define': {
      const nodes: Node[] = []
      defined.set(JSON.parse(rest), nodes)
      open.push({ nodes })
      return
    }
    case 'if':
    case 'with':
    case 'range': {
      const block = { kind: 'block' as const, word, pipe: parsePipe(rest), body: [], otherwise: [] }
      top().nodes.push(block)
      open.push({ nodes: block.body, block })
      return
    }
    case 'else': {
      const { block } = top()
      open.pop()
      if (!block) throw new Error('an {{ else }} outside a block')
      if (!rest.startsWith('if')) {
        open.push({ nodes: block.otherwise, block })
        return
      }
      const inner = {
        kind: 'block' as const,
        word: 'if' as const,
        pipe: parsePipe(rest.slice(2)),
        body: [],
        otherwise: [],
      }
      block.otherwise.push(inner)
      open.push({ nodes: inner.body, block: inner })
      return
    }
    case 'end':
      open.pop()
      return
    default:
      top().nodes.push({ kind: 'action', pipe: parsePipe(action) })
  }
}

type TokenKind = 'string' | 'raw' | 'number' | 'variable' | 'field' | 'word' | 'operator'
interface Token {
  kind: TokenKind
  text: string
}
const tokenKinds: TokenKind[] = ['string', 'raw', 'number', 'variable', 'field', 'word', 'operator']

function tokenize(source: string): Token[] {
  const token =
    /\s*(?:("(?:[^"\\]|\\.)*")|`([^`]*)`|(-?\d+(?:\.\d+)?)|(\$\w*(?:\.[A-Za-z_]\w*)*)|((?:\.[A-Za-z_]\w*)+|\.)|([A-Za-z_]\w*)|(:=|[=|(),]))/y
  const tokens: Token[] = []
  const end = source.trimEnd().length
  while (token.lastIndex < end) {
    const from = token.lastIndex
    const match = token.exec(source)
    if (!match) throw new Error(`cannot read template action: ${source.slice(from)}`)
    const which = match.findIndex((group, index) => index > 0 && group !== undefined)
    tokens.push({ kind: tokenKinds[which - 1] as TokenKind, text: match[which] as string })
  }
  return tokens
}

const fieldsOf = (text: string): string[] => text.split('.').filter(Boolean)

function parsePipe(source: string): Pipe {
  const tokens = tokenize(source)
  let at = 0

  function pipe(): Pipe {
    const result: Pipe = { names: [], declares: false, commands: [] }
    const assignment = tokens.slice(at).findIndex(({ text }) => text === ':=' || text === '=')
    const before = tokens.slice(at, at + Math.max(0, assignment))
    if (assignment > 0 && before.every(({ kind, text }) => kind === 'variable' || text === ',')) {
      result.names = before.filter(({ kind }) => kind === 'variable').map(({ text }) => text)
      result.declares = tokens[at + assignment]?.text === ':='
      at += assignment + 1
    }
    do result.commands.push(command())
    while (tokens[at]?.text === '|' && ++at)
    return result
  }

  function command(): Term[] {
    const terms: Term[] = []
    for (let token = tokens[at]; token && (token.kind !== 'operator' || token.text === '('); token = tokens[at]) {
      at++
      terms.push(term(token))
    }
    return terms
  }

  function term({ kind, text }: Token): Term {
    switch (kind) {
      case 'string':
        return { kind: 'literal', value: JSON.parse(text) }
      case 'raw':
        return { kind: 'literal', value: text }
      case 'number':
        return { kind: 'literal', value: Number(text) }
      case 'variable': {
        const [base = '$', ...fields] = text.split('.')
        return { kind: 'path', base, fields }
      }
      case 'field':
        return { kind: 'path', base: '.', fields: fieldsOf(text) }
      case 'operator': {
        const inner = pipe()
        at++
        const next = tokens[at]
        if (next?.kind !== 'field') return { kind: 'path', base: inner, fields: [] }
        at++
        return { kind: 'path', base: inner, fields: fieldsOf(next.text) }
      }
      case 'word':
        if (text === 'nil') return { kind: 'literal', value: undefined }
        return text === 'true' || text === 'false'
          ? { kind: 'literal', value: text === 'true' }
          : { kind: 'call', name: text }
      default:
        return kind satisfies never
    }
  }

  const result = pipe()
  if (at < tokens.length) throw new Error(`left over in template action: ${source}`)
  return result
}
