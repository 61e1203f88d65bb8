import { Fault } from '@tollgate/contracts'
import type { FastifyInstance } from 'fastify'
import { Invalid } from './validation.ts'

/** Deeper than any request makes sense, and far from where a recursive reader would run out of stack. */
const MOST_DEPTH = 128

/**
 * Takes JSON and nothing else, keeps its text, and lets no body through that later code could trip over: too deep, or
 * with a `__proto__` member, which assigning would make a prototype of.
 */
export function takeJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.decorateRequest('bodyText', '')
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, text, done) => {
    request.bodyText = text
    try {
      done(null, text === '' ? undefined : parseJson(text))
    } catch (error) {
      done(error as Error)
    }
  })
}

export function parseJson(text: string): unknown {
  const parsed = parse(text)
  const problem = findProblem(parsed)
  if (problem) throw new Invalid([{ loc: ['body'], msg: problem, type: 'json_invalid' }])
  return parsed
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // the parser's own words quote the body
    if (error instanceof SyntaxError)
      throw new Invalid([{ loc: ['body'], msg: 'the body is not valid JSON', type: 'json_invalid' }])
    throw new Fault('too_large', 'the body cannot be read', { cause: error })
  }
}

/** Looks at each object and array once, without recursion; texts cost nothing. */
function findProblem(root: unknown): string | undefined {
  if (typeof root !== 'object' || root === null) return undefined
  let level: object[] = [root]
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MOST_DEPTH) return `the body is nested deeper than ${MOST_DEPTH} levels`
    const next: object[] = []
    for (const node of level) {
      if (Object.hasOwn(node, '__proto__')) return 'the body has a member named __proto__'
      for (const key in node) {
        const child: unknown = (node as Record<string, unknown>)[key]
        if (typeof child === 'object' && child !== null) next.push(child)
      }
    }
    level = next
  }
  return undefined
}
