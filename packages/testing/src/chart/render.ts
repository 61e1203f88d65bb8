import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { evaluate } from './evaluate.ts'
import { chartFunctions } from './functions.ts'
import { type Node, parseTemplate } from './syntax.ts'

export interface ChartOptions {
  /** Laid over values.yaml as `helm -f` would: maps merge, anything else replaces. */
  values?: object
  release?: string
}

/** The objects a chart renders to: what `helm template` gives, for the part of the template language the chart uses. */
export function renderChart(folder: string, options: ChartOptions = {}): Record<string, unknown>[] {
  return parseAllDocuments(renderText(folder, options))
    .map((document) => {
      if (document.errors.length > 0) throw new Error(`rendered YAML does not parse: ${document.errors[0]?.message}`)
      return document.toJS() as Record<string, unknown> | null
    })
    .filter((object) => object !== null)
}

/** The rendered manifests as text, NOTES.txt left out. */
export function renderText(folder: string, { values = {}, release = 'rel' }: ChartOptions = {}): string {
  const chart = parse(readFileSync(join(folder, 'Chart.yaml'), 'utf8')) as Record<string, unknown>
  const root = {
    Values: merge(parse(readFileSync(join(folder, 'values.yaml'), 'utf8')), values),
    Chart: Object.fromEntries(
      Object.entries(chart).map(([key, value]) => [key.charAt(0).toUpperCase() + key.slice(1), value]),
    ),
    Release: { Name: release, Namespace: 'default', Service: 'Helm' },
  }
  const defined = new Map<string, Node[]>()
  const files = readdirSync(join(folder, 'templates')).sort()
  const parsed = files.map((file) => ({
    file,
    nodes: parseTemplate(readFileSync(join(folder, 'templates', file), 'utf8'), defined),
  }))
  const functions = chartFunctions((name, dot) => {
    const body = defined.get(name)
    if (!body) throw new Error(`no template ${name}`)
    return evaluate(body, { dot, variables: [new Map([['$', dot]])] }, functions)
  })
  return parsed
    .filter(({ file }) => file.endsWith('.yaml'))
    .map(({ nodes }) => evaluate(nodes, { dot: root, variables: [new Map<string, unknown>([['$', root]])] }, functions))
    .join('\n---\n')
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function merge(base: unknown, over: unknown): unknown {
  if (!isMap(base) || !isMap(over)) return over === undefined ? base : over
  const merged = { ...base }
  for (const [key, value] of Object.entries(over)) {
    // null removes a default, as it does for helm
    if (value === null) delete merged[key]
    else merged[key] = merge(base[key], value)
  }
  return merged
}
