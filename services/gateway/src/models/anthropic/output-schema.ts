import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject } from '../../conversation/turn.ts'

/** String formats that the vendor enforces. */
const FORMATS = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'])
const KEPT = new Set(['type', 'enum', 'const', 'title', '$ref', 'required'])
const SUBSCHEMAS = new Set(['properties', '$defs', 'definitions'])
const VARIANTS = new Set(['anyOf', 'oneOf', 'allOf'])
/** Say nothing about a value. */
const IDLE = new Set(['$schema', '$id', 'default', 'examples', 'description', 'additionalProperties'])

/**
 * A JSON schema as structured outputs take it: objects are closed, and what cannot be enforced (bounds, patterns) is
 * told to the model in the description instead of being refused.
 */
export function outputSchema(schema: Json): Json {
  if (!isObject(schema)) return schema
  const kept: JsonObject = {}
  const told: string[] = []
  for (const [keyword, value] of Object.entries(schema)) {
    if (IDLE.has(keyword)) continue
    if (KEPT.has(keyword)) kept[keyword] = value
    else if (SUBSCHEMAS.has(keyword) && isObject(value)) kept[keyword] = mapValues(value)
    else if (VARIANTS.has(keyword) && Array.isArray(value))
      kept[keyword === 'oneOf' ? 'anyOf' : keyword] = value.map(outputSchema)
    else if (keyword === 'items') kept.items = outputSchema(value)
    else if (keyword === 'format' && typeof value === 'string' && FORMATS.has(value)) kept.format = value
    else if (keyword === 'minItems' && (value === 0 || value === 1)) kept.minItems = value
    else told.push(`${keyword}: ${JSON.stringify(value)}`)
  }
  if (schema.type === 'object' || isObject(schema.properties)) kept.additionalProperties = false
  const description = [schema.description, ...(told.length > 0 ? [`(${told.join(', ')})`] : [])].filter(Boolean)
  if (description.length > 0) kept.description = description.join(' ')
  return kept
}

const mapValues = (schemas: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, outputSchema(schema)]))
