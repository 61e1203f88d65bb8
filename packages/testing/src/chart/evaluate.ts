import { type Functions, show, truth } from './functions.ts'
import type { Node, Pipe, Term } from './syntax.ts'

/** `dot` and the variables in reach, innermost last. */
export interface Scope {
  dot: unknown
  variables: Map<string, unknown>[]
}

export function evaluate(nodes: Node[], scope: Scope, functions: Functions): string {
  return nodes.map((node) => evaluateNode(node, scope, functions)).join('')
}

function evaluateNode(node: Node, scope: Scope, functions: Functions): string {
  switch (node.kind) {
    case 'text':
      return node.text
    case 'action': {
      const value = pipeValue(node.pipe, scope, functions)
      return node.pipe.names.length > 0 || value === undefined || value === null ? '' : show(value)
    }
    case 'block':
      return evaluateBlock(node, scope, functions)
    default:
      return node satisfies never
  }
}

function evaluateBlock(block: Extract<Node, { kind: 'block' }>, scope: Scope, functions: Functions): string {
  const own: Scope = { dot: scope.dot, variables: [...scope.variables, new Map()] }
  const value = pipeValue(block.word === 'range' ? { ...block.pipe, names: [] } : block.pipe, own, functions)
  if (!truth(value)) return evaluate(block.otherwise, own, functions)
  if (block.word === 'if') return evaluate(block.body, own, functions)
  if (block.word === 'with') return evaluate(block.body, { ...own, dot: value }, functions)
  const entries: [unknown, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : Object.entries(value as object).sort(([a], [b]) => (a < b ? -1 : 1))
  const { names } = block.pipe
  return entries
    .map(([key, entry]) => {
      const bound = names.length === 2 ? [key, entry] : [entry]
      const variables = new Map(names.map((name, index) => [name, bound[index]]))
      return evaluate(block.body, { dot: entry, variables: [...own.variables, variables] }, functions)
    })
    .join('')
}

function pipeValue(pipe: Pipe, scope: Scope, functions: Functions): unknown {
  let piped: unknown[] = []
  for (const [head, ...rest] of pipe.commands) {
    if (!head) throw new Error('an empty command in a template action')
    if (head.kind === 'call') {
      const args = [...rest.map((term) => termOf(term, scope, functions)), ...piped]
      piped = [call(head.name, args, functions)]
    } else piped = [termOf(head, scope, functions)]
  }
  for (const name of pipe.names) {
    const where = pipe.declares ? scope.variables.at(-1) : scope.variables.findLast((variables) => variables.has(name))
    if (!where) throw new Error(`undefined variable ${name}`)
    where.set(name, piped[0])
  }
  return piped[0]
}

function call(name: string, args: unknown[], functions: Functions): unknown {
  const found = functions[name]
  if (!found) throw new Error(`this renderer has no function ${name}`)
  return found(...args)
}

function termOf(term: Term, scope: Scope, functions: Functions): unknown {
  if (term.kind === 'literal') return term.value
  if (term.kind === 'call') return call(term.name, [], functions)
  const { base, fields } = term
  const start =
    typeof base !== 'string' ? pipeValue(base, scope, functions) : base === '.' ? scope.dot : variable(base, scope)
  return fields.reduce<unknown>((value, field) => {
    if (value === undefined || value === null) throw new Error(`nil pointer evaluating .${fields.join('.')}`)
    return (value as Record<string, unknown>)[field]
  }, start)
}

function variable(name: string, scope: Scope): unknown {
  const found = scope.variables.findLast((variables) => variables.has(name))
  if (!found) throw new Error(`undefined variable ${name}`)
  return found.get(name)
}
