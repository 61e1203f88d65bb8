import { z } from 'zod'

/** An option of a search provider, as data: the gateway checks declarations with it before any model is called (S-35). */
export const searchOption = z.object({
  name: z.string().min(1),
  type: z.enum(['string', 'integer', 'boolean']),
  /** Values a string may have; told apart without case. */
  enum: z.array(z.string()).optional(),
  /** What a string must match as a whole. */
  pattern: z.string().optional(),
  minimum: z.int().optional(),
  maximum: z.int().optional(),
  default: z.union([z.string(), z.int(), z.boolean()]).optional(),
  description: z.string(),
})
export type SearchOption = z.infer<typeof searchOption>
export type SearchOptionValue = string | number | boolean
export type SearchOptionValues = Readonly<Record<string, SearchOptionValue>>

const LONGEST_STRING = 200

export interface CheckedOptions {
  /** Known options with usable values, an enum's in its own spelling. */
  accepted: SearchOptionValues
  /** The rest, each with words for whoever wrote it; the value itself is never repeated. */
  problems: { name: string; why: string }[]
}

/** Sorts given options into those the provider takes and those it does not. What follows from a problem is the caller's. */
export function checkSearchOptions(known: readonly SearchOption[], given: Record<string, unknown>): CheckedOptions {
  const accepted: [string, SearchOptionValue][] = []
  const problems: CheckedOptions['problems'] = []
  for (const [name, value] of Object.entries(given)) {
    const option = known.find((candidate) => candidate.name === name)
    const read = option ? readOption(option, value) : { why: 'is not an option of this provider' }
    if ('why' in read) problems.push({ name, why: read.why })
    else accepted.push([name, read.value])
  }
  return { accepted: Object.fromEntries(accepted), problems }
}

function readOption(option: SearchOption, value: unknown): { value: SearchOptionValue } | { why: string } {
  switch (option.type) {
    case 'boolean':
      return typeof value === 'boolean' ? { value } : { why: 'must be true or false' }
    case 'integer': {
      const { minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER } = option
      const fits = typeof value === 'number' && Number.isSafeInteger(value) && value >= minimum && value <= maximum
      return fits ? { value } : { why: `must be a whole number${span(option)}` }
    }
    case 'string': {
      if (typeof value !== 'string' || value === '' || value.length > LONGEST_STRING) {
        return { why: `must be a text of 1 to ${LONGEST_STRING} characters` }
      }
      if (option.enum) {
        const spelled = option.enum.find((allowed) => allowed.toLowerCase() === value.toLowerCase())
        return spelled === undefined ? { why: `must be one of ${option.enum.join(', ')}` } : { value: spelled }
      }
      const matches = option.pattern === undefined || new RegExp(`^(?:${option.pattern})$`).test(value)
      return matches ? { value } : { why: `must match ${option.pattern}` }
    }
    default:
      return option.type satisfies never
  }
}

const span = ({ minimum, maximum }: SearchOption): string =>
  minimum === undefined ? '' : maximum === undefined ? ` from ${minimum} up` : ` from ${minimum} to ${maximum}`
