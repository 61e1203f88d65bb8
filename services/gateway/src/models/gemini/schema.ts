import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject } from '../../conversation/turn.ts'

/** Keywords that the vendor knows. */
const KEPT = new Set([
  'type',
  'enum',
  'title',
  'format',
  'required',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
  'propertyOrdering',
])
const SUBSCHEMAS = new Set(['properties', '$defs', 'definitions'])
const VARIANTS = new Set(['anyOf', 'oneOf'])
/** Say nothing about a value. */
const IDLE = new Set(['$schema', '$id', '$anchor', '$comment', 'default', 'example', 'examples', 'description'])

/** A JSON schema in the vendor's subset of it: what is not in there is told to the model in the description. */
export function geminiSchema(schema: Json): Json {
  if (!isObject(schema)) return schema
  const kept: JsonObject = {}
  const told: string[] = []
  for (const [keyword, value] of Object.entries(schema)) {
    if (IDLE.has(keyword)) continue
    if (KEPT.has(keyword)) kept[keyword] = value
    else if (SUBSCHEMAS.has(keyword) && isObject(value))
      kept[keyword === 'definitions' ? '$defs' : keyword] = each(value)
    else if (VARIANTS.has(keyword) && Array.isArray(value)) kept.anyOf = value.map(geminiSchema)
    else if (keyword === 'allOf' && Array.isArray(value) && value.length === 1)
      Object.assign(kept, geminiSchema(value[0] ?? {}))
    else if (keyword === 'prefixItems' && Array.isArray(value)) kept.prefixItems = value.map(geminiSchema)
    else if (keyword === 'items' || keyword === 'additionalProperties') kept[keyword] = geminiSchema(value)
    else if (keyword === '$ref') kept.$ref = String(value).replace(/^#\/definitions\//, '#/$defs/')
    else if (keyword === 'const') kept.enum = [value]
    else told.push(`${keyword}: ${JSON.stringify(value)}`)
  }
  const description = [schema.description, ...(told.length > 0 ? [`(${told.join(', ')})`] : [])].filter(Boolean)
  if (description.length > 0) kept.description = description.join(' ')
  return kept
}

const each = (schemas: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, geminiSchema(schema)]))
