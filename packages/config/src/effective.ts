import type { Loaded } from './load.ts'
import { credentialUrls, secretSettings } from './schema.ts'

/** The settings in force and where each came from, without secrets: what `check-config` prints. */
export function effectiveConfig({ config, origins }: Loaded): Record<string, { value: unknown; from: string }> {
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [
      name,
      { value: withoutSecrets(name, value), from: origins[name] ?? 'default' },
    ]),
  )
}

function withoutSecrets(name: string, value: unknown): unknown {
  if (typeof value === 'string') {
    if (secretSettings.has(name)) return '(set)'
    return credentialUrls.has(name) ? value.replace(/\/\/[^@/]*@/, '//(set)@') : value
  }
  if (Array.isArray(value)) return value.map((entry) => withoutSecrets(name, entry))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, withoutSecrets(key, entry)]))
  return value
}
