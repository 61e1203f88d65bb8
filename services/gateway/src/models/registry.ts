import { Fault } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { Wire } from '../conversation/turn.ts'
import { anthropicProvider } from './anthropic/provider.ts'
import { demoModels, demoProvider } from './demo/provider.ts'
import { observed } from './observe.ts'
import { openAiChatProvider } from './openai-chat/provider.ts'
import type { ModelProvider } from './provider.ts'
import { openUpstream, upstreamDefaults } from './upstream.ts'

export type ProviderType = 'openai' | 'anthropic' | 'openai-compatible' | 'anthropic-compatible'

/** One entry of `providers` in the config. */
export interface ProviderSettings {
  /** May be left out where the instance is named for the vendor. */
  type?: ProviderType | undefined
  apiKey?: string | undefined
  /** Where the API begins. A compatible server needs one; the vendors have their own. */
  apiBase?: string | undefined
  /** Names to list; any other name of the provider may still be asked for. */
  models: readonly string[]
  /** Anthropic's API demands `max_tokens`; this stands in where a client names none. */
  defaultMaxTokens?: number | undefined
  /** Overrides of `upstreamDefaults`. */
  limits?: Partial<typeof upstreamDefaults> | undefined
}

export interface RegistryNeeds {
  providers: Readonly<Record<string, ProviderSettings>>
  /** Whether the built-in `demo` models may be asked. */
  demo: boolean
  log: Log
}

export interface ResolvedModel {
  provider: ModelProvider
  /** The provider's own name for the model. */
  model: string
  type: ProviderType | 'demo'
}

export interface ModelRegistry {
  /** What a selector, `provider:model`, names. Throws `invalid_request` or `not_found` with a text that says what to do. */
  resolve(selector: string): ResolvedModel
  /** The configured models, for `GET /models`. */
  list(): { id: string; provider: string; model: string }[]
  close(): Promise<void>
}

const DEMO = 'demo'
const DEFAULT_MAX_TOKENS = 8_192

const wires: Record<ProviderType, { wire: Wire; base: string | undefined }> = {
  openai: { wire: 'openai-chat', base: 'https://api.openai.com/v1' },
  anthropic: { wire: 'anthropic', base: 'https://api.anthropic.com' },
  'openai-compatible': { wire: 'openai-chat', base: undefined },
  'anthropic-compatible': { wire: 'anthropic', base: undefined },
}

/** Every model provider of the deployment by its name. */
export function openModels({ providers, demo, log }: RegistryNeeds): ModelRegistry {
  const instances = new Map<string, Omit<ResolvedModel, 'model'> & { models: readonly string[] }>()
  for (const [name, settings] of Object.entries(providers)) {
    const type = settings.type ?? typeNamed(name)
    instances.set(name, { provider: observed(openProvider(name, type, settings, log)), type, models: settings.models })
  }
  if (demo && !instances.has(DEMO))
    instances.set(DEMO, { provider: observed(demoProvider(DEMO)), type: 'demo', models: demoModels })

  return {
    resolve(selector) {
      const colon = selector.indexOf(':')
      const names = Array.from(instances.keys()).join(', ')
      if (colon <= 0 || colon === selector.length - 1)
        throw new Fault('invalid_request', `'model' must be provider:model; the providers here are: ${names || 'none'}`)
      const found = instances.get(selector.slice(0, colon))
      if (!found)
        throw new Fault(
          'not_found',
          `no model provider of that name is configured; the providers here are: ${names || 'none'}`,
        )
      return { provider: found.provider, type: found.type, model: selector.slice(colon + 1) }
    },
    list: () =>
      Array.from(instances, ([provider, { models }]) =>
        models.map((model) => ({ id: `${provider}:${model}`, provider, model })),
      ).flat(),
    async close() {
      await Promise.all(Array.from(instances.values(), ({ provider }) => provider.close()))
    },
  }
}

function typeNamed(name: string): ProviderType {
  if (name === 'openai' || name === 'anthropic') return name
  throw new Error(`providers.${name}: 'type' must be one of ${Object.keys(wires).join(', ')}`)
}

function openProvider(name: string, type: ProviderType, settings: ProviderSettings, log: Log): ModelProvider {
  const { wire, base: vendorBase } = wires[type]
  const address = settings.apiBase ?? vendorBase
  if (address === undefined) throw new Error(`providers.${name}: a provider of type '${type}' needs 'api_base'`)
  const base = new URL(address)
  // the path of the Messages API begins with the version, which people put into the base as well
  if (wire === 'anthropic') base.pathname = base.pathname.replace(/\/v1\/?$/, '')
  const { apiKey } = settings
  const origin = { name, wire, hidden: [base.host, base.hostname, ...(apiKey === undefined ? [] : [apiKey])] }
  const upstream = openUpstream(origin, {
    ...upstreamDefaults,
    ...settings.limits,
    base,
    headers: credentials(wire, apiKey),
  })
  if (wire === 'openai-chat')
    return openAiChatProvider(origin, upstream, type === 'openai' ? 'max_completion_tokens' : 'max_tokens', log)
  const defaultMaxTokens = settings.defaultMaxTokens ?? DEFAULT_MAX_TOKENS
  return anthropicProvider(origin, upstream, { defaultMaxTokens, replayUnsigned: type !== 'anthropic' }, log)
}

function credentials(wire: Wire, key: string | undefined): Record<string, string> {
  if (wire === 'anthropic') return { 'anthropic-version': '2023-06-01', ...(key !== undefined && { 'x-api-key': key }) }
  return key === undefined ? {} : { authorization: `Bearer ${key}` }
}
