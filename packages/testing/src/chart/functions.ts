import { createHash } from 'node:crypto'
import { stringify } from 'yaml'

// Template functions take whatever a chart hands them, as Go's do; each converts what it needs.
export type Functions = Record<string, (...args: unknown[]) => unknown>

const text = (value: unknown): string => String(value)

export function truth(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value)
}

export const show = (value: unknown): string =>
  typeof value === 'string' ? value : typeof value === 'object' ? JSON.stringify(value) : String(value)

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, entry]) => [key, sorted(entry)]),
  )
}

const indent = (spaces: unknown, value: unknown): string =>
  text(value)
    .split('\n')
    .map((line) => ' '.repeat(Number(spaces)) + line)
    .join('\n')

const printf = (format: unknown, ...values: unknown[]): string =>
  text(format).replace(/%[sdvq]/g, (verb) => (verb === '%q' ? JSON.stringify(values.shift()) : show(values.shift())))

/** The functions of Go templates and sprig that the chart uses; any other name fails the rendering. */
export function chartFunctions(include: (name: string, dot: unknown) => string): Functions {
  return {
    include: (name, dot) => include(text(name), dot),
    printf,
    indent,
    nindent: (spaces, value) => `\n${indent(spaces, value)}`,
    toYaml: (value) =>
      value === undefined
        ? 'null'
        : stringify(sorted(value), { lineWidth: 0, indentSeq: false, version: '1.1' }).trimEnd(),
    toJson: (value) => JSON.stringify(sorted(value)),
    quote: (value) => (value === undefined || value === null ? '' : JSON.stringify(show(value))),
    default: (fallback, value) => (truth(value) ? value : fallback),
    required: (message, value) => {
      if (value === undefined || value === null || value === '') throw new Error(text(message))
      return value
    },
    fail: (message) => {
      throw new Error(text(message))
    },
    trunc: (length, value) => text(value).slice(0, Number(length)),
    trimSuffix: (suffix, value) =>
      text(value).endsWith(text(suffix)) ? text(value).slice(0, -text(suffix).length) : value,
    replace: (from, to, value) => text(value).replaceAll(text(from), text(to)),
    lower: (value) => text(value).toLowerCase(),
    upper: (value) => text(value).toUpperCase(),
    sha256sum: (value) => createHash('sha256').update(text(value)).digest('hex'),
    dict: (...pairs) =>
      Object.fromEntries(Array.from({ length: pairs.length / 2 }, (_, i) => [pairs[2 * i], pairs[2 * i + 1]])),
    list: (...entries) => entries,
    index: (value, ...keys) =>
      keys.reduce((entry, key) => (entry as Record<string, unknown> | undefined)?.[text(key)], value),
    has: (entry, list) => Array.isArray(list) && list.includes(entry),
    hasKey: (value, key) => text(key) in (value as object),
    add: (...values) => values.reduce<number>((sum, value) => sum + Math.trunc(Number(value)), 0),
    int: (value) => Math.trunc(Number(value)),
    and: (...values) => values.find((value) => !truth(value)) ?? values.at(-1),
    or: (...values) => values.find(truth) ?? values.at(-1),
    not: (value) => !truth(value),
    eq: (value, ...others) => others.includes(value),
    ne: (a, b) => a !== b,
    gt: (a, b) => Number(a) > Number(b),
    lt: (a, b) => Number(a) < Number(b),
  }
}
