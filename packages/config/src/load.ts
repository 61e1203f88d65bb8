import { readFileSync } from 'node:fs'
import { parse, YAMLParseError } from 'yaml'
import { z } from 'zod'
import { type Config, configSchema } from './schema.ts'
import { webServerVariables } from './web-server-variables.ts'

export interface Loaded {
  config: Config
  /** Where each setting that is not a default came from. */
  origins: Record<string, 'file' | 'environment'>
  /** Sentences for the log: what looks like a mistake but stops nothing. */
  warnings: string[]
}

/** A sentence that says which setting is wrong and what it must be; shown without a stack. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/**
 * Reads the YAML file, fills `${NAME}` from the environment, lays `OTARI_<NAME>` over scalar settings, and parses all of
 * it once. What is unknown or malformed throws a `ConfigError` that names the setting. Without a file only the
 * environment and the defaults count.
 */
export function loadConfig(file: string | undefined, env: NodeJS.ProcessEnv): Loaded {
  const fromFile = file === undefined ? {} : readFile(file, env)
  const { values, variables, warnings } = readEnvironment(env)
  const read = configSchema.safeParse({ ...fromFile, ...values })
  if (!read.success)
    throw new ConfigError(read.error.issues.map((issue) => describe(issue, variables, file)).join('\n'))
  return {
    config: read.data,
    origins: {
      ...Object.fromEntries(Object.keys(fromFile).map((name) => [name, 'file' as const])),
      ...Object.fromEntries(Object.keys(values).map((name) => [name, 'environment' as const])),
    },
    warnings: [...warnings, ...halfPairs(read.data)],
  }
}

function readFile(file: string, env: NodeJS.ProcessEnv): Record<string, unknown> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    throw new ConfigError(`the config file ${file} cannot be read`, { cause })
  }
  try {
    const document: unknown = parse(text, { prettyErrors: true }) ?? {}
    if (typeof document !== 'object' || document === null || Array.isArray(document))
      throw new ConfigError(`${file}: must hold settings, one \`name: value\` a line`)
    return interpolate(document, env, file) as Record<string, unknown>
  } catch (error) {
    if (error instanceof YAMLParseError) throw new ConfigError(`${file}: ${error.message}`)
    throw error
  }
}

/** Fills `${NAME}` inside string values only, after parsing: a value can never change the file's structure. */
function interpolate(node: unknown, env: NodeJS.ProcessEnv, file: string): unknown {
  if (typeof node === 'string')
    return node.replace(/\$\{(\w+)\}/g, (_, name: string) => {
      const value = env[name]
      if (value === undefined) throw new ConfigError(`${file} uses \${${name}}, which is not set in the environment`)
      return value
    })
  if (Array.isArray(node)) return node.map((entry) => interpolate(entry, env, file))
  if (typeof node === 'object' && node !== null)
    return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, interpolate(value, env, file)]))
  return node
}

/** Read by the entry point or by clients under the same prefix, so not settings of this schema. */
const notSettings = new Set(['OTARI_CONFIG', 'OTARI_SECRET_KEY', 'OTARI_API_KEY', 'OTARI_BASE_URL'])

interface Environment {
  values: Record<string, unknown>
  /** The variable that each of them came from. */
  variables: Record<string, string>
  warnings: string[]
}

/** Environment values of scalar settings, as the type the schema wants where the text can be read so. */
function readEnvironment(env: NodeJS.ProcessEnv): Environment {
  const values: Record<string, unknown> = {}
  const variables: Record<string, string> = {}
  const warnings: string[] = []
  const take = (variable: string, name: string, kind: Scalar, text: string) => {
    if (text.trim() === '') return
    values[name] = read(kind, text.trim())
    variables[name] = variable
  }
  for (const [variable, text] of Object.entries(env)) {
    if (!variable.startsWith('OTARI_') || notSettings.has(variable) || text === undefined) continue
    const name = variable.slice('OTARI_'.length).toLowerCase()
    const kind = scalarKinds.get(name)
    if (kind === undefined) warnings.push(`${variable} is not a setting and is ignored`)
    else take(variable, name, kind, text)
  }
  // WM-11: last, so that an environment made for the server these names come from means the same here
  for (const [variable, name] of Object.entries(webServerVariables)) {
    take(variable, name, scalarKinds.get(name) ?? 'string', env[variable] ?? '')
  }
  return { values, variables, warnings }
}

type Scalar = 'string' | 'number' | 'boolean' | 'enum'

function read(kind: Scalar, text: string): unknown {
  switch (kind) {
    case 'number':
      return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
    case 'boolean':
      return /^(true|1|yes|on)$/i.test(text) ? true : /^(false|0|no|off)$/i.test(text) ? false : text
    case 'string':
    case 'enum':
      return text
    default:
      return kind satisfies never
  }
}

const scalarKinds: ReadonlyMap<string, Scalar> = new Map(
  Object.entries(configSchema.shape).flatMap(([name, schema]) => {
    const kind = scalarKind(schema)
    return kind ? [[name, kind] as const] : []
  }),
)

function scalarKind(schema: z.ZodType): Scalar | undefined {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return scalarKind(schema.unwrap() as z.ZodType)
  // one that is tidied before it is read
  if (schema instanceof z.ZodPipe && schema.in instanceof z.ZodTransform) return scalarKind(schema.out as z.ZodType)
  if (schema instanceof z.ZodNumber) return 'number'
  if (schema instanceof z.ZodBoolean) return 'boolean'
  if (schema instanceof z.ZodEnum) return 'enum'
  // a plain string, and the formats that zod derives from it (URLs)
  if (schema.def.type === 'string') return 'string'
  return undefined
}

function describe(issue: z.core.$ZodIssue, variables: Record<string, string>, file: string | undefined): string {
  const path = issue.path.map(String).join('.')
  const place = variables[String(issue.path[0])] ?? file ?? 'settings'
  return `${place}: ${path ? `${path}: ` : ''}${issue.message}`
}

/** CFG-55: half of the legacy pair counts as unset, and is worth a word. */
function halfPairs(config: Config): string[] {
  const { web_search_provider: named, web_search_provider_api_key: key } = config
  if (named !== undefined && key === undefined)
    return ['web_search_provider is set without web_search_provider_api_key: both count as unset']
  if (named === undefined && key !== undefined)
    return ['web_search_provider_api_key is set without web_search_provider: both count as unset']
  return []
}
