import { isObject } from '../conversation/json.ts'
import type { Json, JsonObject } from '../conversation/turn.ts'

/** Keywords that model APIs refuse at the root of a function's schema; the server itself still goes by them. */
const REFUSED_AT_ROOT = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'enum', 'const', '$schema', '$id']
const MOST_DEPTH = 64
const LOOKAROUND = /\(\?(?:[=!]|<[=!])/

/**
 * A tool's schema in a form that every model API takes (BR-151): an object at its root, alternatives of the root folded
 * into it, no list of positions under `items`, no pattern with lookaround. It tells the model how to call, and no more:
 * the server judges the call by the schema it wrote. Undefined: nested deeper than anybody reads.
 */
export function offeredSchema(schema: JsonObject): JsonObject | undefined {
  const walked = adapted(schema, 0)
  if (!isObject(walked)) return undefined
  const root = Object.fromEntries(Object.entries(walked).filter(([name]) => !REFUSED_AT_ROOT.includes(name)))
  const required = requiredIn(walked)
  return {
    ...root,
    type: 'object',
    properties: foldedProperties(walked),
    ...(required.length > 0 && { required }),
  }
}

/** What any branch of the root has; where two have the same, the first of them. */
function foldedProperties(root: JsonObject): JsonObject {
  const branches = ['allOf', 'anyOf', 'oneOf'].flatMap((name) => listOf(root[name]))
  const conditional = [root.if, root.then, root.else]
  const all = [root, ...branches, ...conditional].flatMap((branch) =>
    isObject(branch) && isObject(branch.properties) ? [branch.properties] : [],
  )
  return Object.assign({}, ...all.toReversed())
}

/** Of alternatives nothing is required, since each asks for something else. */
function requiredIn(root: JsonObject): Json[] {
  const all = [root, ...listOf(root.allOf)].flatMap((branch) => (isObject(branch) ? listOf(branch.required) : []))
  return [...new Set(all)]
}

const listOf = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : [])

function adapted(value: Json, depth: number): Json | undefined {
  if (depth > MOST_DEPTH) return undefined
  if (Array.isArray(value)) {
    const items = value.map((item) => adapted(item, depth + 1))
    return items.every((item) => item !== undefined) ? items : undefined
  }
  if (!isObject(value)) return value
  const members: JsonObject = {}
  for (const [name, member] of Object.entries(value)) {
    if (name === '__proto__') continue
    if (name === 'pattern' && typeof member === 'string' && LOOKAROUND.test(member)) continue
    const read = adapted(member, depth + 1)
    if (read === undefined) return undefined
    // draft 2020-12 knows no list here; what may stand at any place may stand at each
    members[name] = name === 'items' && Array.isArray(read) ? { anyOf: read } : read
  }
  return members
}
