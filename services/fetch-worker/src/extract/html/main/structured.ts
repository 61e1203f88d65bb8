/** What a page tells machines about itself in JSON-LD, as far as it is read here. */
export interface Structured {
  /** Values of `@type`, of all objects. */
  types: Set<string>
  headline?: string
  author?: string
  published?: string
  siteName?: string
  description?: string
  articleBody?: string
  /** All descriptions and texts, one after the other. */
  said: string
}

const MAX_OBJECTS = 5_000
const MAX_TEXT_CHARACTERS = 64 * 1024
const isArticle = /(?:Article|BlogPosting|Report|Recipe|HowTo)$/

/** Scripts that are no JSON are as if they were not there: much of what sites write there is broken. */
export function readStructured(scripts: readonly string[]): Structured {
  const out: Structured = { types: new Set(), said: '' }
  const queue: unknown[] = []
  for (const script of scripts) {
    const value = parseLoosely(script)
    if (value !== undefined) queue.push(value)
  }
  for (let at = 0; at < queue.length && at < MAX_OBJECTS; at++) {
    const value = queue[at]
    if (Array.isArray(value)) queue.push(...value.slice(0, MAX_OBJECTS))
    else if (typeof value === 'object' && value !== null) {
      takeObject(out, value as Record<string, unknown>)
      for (const each of Object.values(value)) if (typeof each === 'object' && each !== null) queue.push(each)
    }
  }
  return out
}

function parseLoosely(script: string): unknown {
  try {
    return JSON.parse(script.replace(/^\s*(?:<!--|\/\*<!\[CDATA\[\*\/)|(?:-->|\/\*\]\]>\*\/)\s*$/g, ''))
  } catch {
    return undefined
  }
}

function takeObject(out: Structured, object: Record<string, unknown>): void {
  const types = [object['@type']].flat().filter((type) => typeof type === 'string')
  for (const type of types) if (out.types.size < MAX_OBJECTS) out.types.add(type.replace(/^.*[/#]/, ''))
  for (const name of ['description', 'text', 'reviewBody']) {
    const said = object[name]
    if (typeof said === 'string' && out.said.length < MAX_TEXT_CHARACTERS)
      out.said += ` ${said.slice(0, MAX_TEXT_CHARACTERS)}`
  }
  const isMain = types.some((type) => isArticle.test(type))
  const take = (name: 'headline' | 'author' | 'published' | 'description' | 'articleBody', value: unknown): void => {
    const text = nameOf(value)
    if (text !== undefined && (isMain || out[name] === undefined)) out[name] ??= text
  }
  if (isMain) {
    take('headline', object.headline ?? object.name)
    take('author', object.author)
    take('articleBody', object.articleBody)
  }
  take('published', object.datePublished)
  if (isMain || types.includes('Product')) take('description', object.description)
  if (types.includes('WebSite')) {
    const name = nameOf(object.name)
    if (name !== undefined) out.siteName ??= name
  }
}

/** A name as text, an object with one, or several of them. */
function nameOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value.slice(0, MAX_TEXT_CHARACTERS)
  if (Array.isArray(value)) {
    const names = value.slice(0, 10).map((each) => (Array.isArray(each) ? undefined : nameOf(each)))
    const found = names.filter((name) => name !== undefined)
    return found.length > 0 ? found.join(', ') : undefined
  }
  return typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'
    ? nameOf(value.name)
    : undefined
}
