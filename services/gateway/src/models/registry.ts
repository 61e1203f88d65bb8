import { Fault, type SeatSettings } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { Dialect, Wire } from '../conversation/turn.ts'
import { anthropicProvider } from './anthropic/provider.ts'
import { type ConfiguredSeat, openSeats } from './configured-seats.ts'
import { demoModels, demoProvider } from './demo/provider.ts'
import { geminiProvider } from './gemini/provider.ts'
import { observed } from './observe.ts'
import { openAiChatProvider } from './openai-chat/provider.ts'
import { plainChat } from './openai-chat/quirks.ts'
import { openAiResponsesProvider } from './openai-responses/provider.ts'
import { type ProviderType, presetOf, providerTypes, typeNamed } from './presets.ts'
import { dialectOfWire, type ModelProvider } from './provider.ts'
import type { SeatTools } from './seats.ts'
import { openUpstream, type UpstreamConnection, upstreamDefaults } from './upstream.ts'
import type { Origin } from './upstream-fault.ts'

/** One entry of `providers` in the config. */
export interface ProviderSettings {
  /** May be left out where the instance is named for the vendor. */
  type?: ProviderType | undefined
  apiKey?: string | undefined
  /** Where the API begins. A compatible server needs one; the vendors have their own. */
  apiBase?: string | undefined
  /** The one API that an `openai` instance is asked by; the one that the client speaks when absent. */
  wire?: 'openai-chat' | 'openai-responses' | undefined
  /** Names to list; any other name of the provider may still be asked for. */
  models: readonly string[]
  /** Anthropic's API demands `max_tokens`; this stands in where a client names none. */
  defaultMaxTokens?: number | undefined
  /** Overrides of `upstreamDefaults`. */
  limits?: Partial<typeof upstreamDefaults> | undefined
}

export type { ProviderType } from './presets.ts'

export interface RegistryNeeds {
  providers: Readonly<Record<string, ProviderSettings>>
  /** Models by names of the deployment's own; none when absent. */
  seats?: Readonly<Record<string, SeatSettings>>
  /** Whether the built-in `demo` models may be asked. */
  demo: boolean
  log: Log
}

export interface ResolvedModel {
  provider: ModelProvider
  /** The provider's own name for the model. */
  model: string
  type: ProviderType | 'demo'
  /** What its backend runs by itself; absent where that is nothing. */
  seat?: SeatTools | undefined
}

export interface ModelRegistry {
  /**
   * What a selector, `provider:model` or a seat's name, stands for; where an instance speaks several wires, the client's dialect chooses. Throws
   * `invalid_request` or `not_found` with a text that says what to do.
   */
  resolve(selector: string, dialect?: Dialect): ResolvedModel
  /** `provider:model` behind a seat's name; any other selector as it is. */
  selectorOf(selector: string): string
  /** Those that can be used. */
  seats(): ConfiguredSeat[]
  /** Why a seat set up like this could not be used; undefined where it could. */
  seatFault(name: string, settings: SeatSettings): string | undefined
  /** Sets the seats up anew, for requests from now on; what is under way keeps the seat it has (PE-71). */
  setSeats(settings: Readonly<Record<string, SeatSettings>>): void
  /** The configured models, for `GET /models`. */
  list(): { id: string; provider: string; model: string }[]
  /** Every configured instance, by the provider that serves most dialects. */
  instances(): { name: string; type: ResolvedModel['type']; models: readonly string[]; provider: ModelProvider }[]
  close(): Promise<void>
}

const DEMO = 'demo'
const DEFAULT_MAX_TOKENS = 8_192

/** One entry of `providers`, by each wire that it speaks. */
export interface Instance {
  type: ResolvedModel['type']
  models: readonly string[]
  providers: readonly [ModelProvider, ...ModelProvider[]]
}

/** Every model provider of the deployment by its name. */
export function openModels({ providers, seats: configured = {}, demo, log }: RegistryNeeds): ModelRegistry {
  const instances = new Map<string, Instance>()
  for (const [name, settings] of Object.entries(providers)) {
    const type = settings.type ?? mustBeNamed(name)
    instances.set(name, { type, models: settings.models, providers: openProviders(name, type, settings, log) })
  }
  if (demo && !instances.has(DEMO))
    instances.set(DEMO, { type: 'demo', models: demoModels, providers: [observed(demoProvider(DEMO))] })

  const seats = openSeats(instances, log)
  seats.set(configured)

  return {
    selectorOf: (selector) => seats.find(selector)?.selector ?? selector,
    seats: seats.list,
    seatFault: seats.fault,
    setSeats: seats.set,
    resolve(selector, dialect) {
      if (seats.has(selector)) return seats.resolve(selector, dialect)
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
      const { providers: all, type } = found
      const provider = all.find(({ wire }) => dialectOfWire[wire] === dialect) ?? all[0]
      return { provider, type, model: selector.slice(colon + 1) }
    },
    list: () =>
      Array.from(instances, ([provider, { models }]) =>
        models.map((model) => ({ id: `${provider}:${model}`, provider, model })),
      ).flat(),
    instances: () =>
      Array.from(
        instances,
        ([
          name,
          {
            type,
            models,
            providers: [provider],
          },
        ]) => ({ name, type, models, provider }),
      ),
    async close() {
      await Promise.all(
        Array.from(instances.values()).flatMap(({ providers: all }) => all.map((provider) => provider.close())),
      )
    },
  }
}

function mustBeNamed(name: string): ProviderType {
  const type = typeNamed(name)
  if (type !== undefined) return type
  throw new Error(`providers.${name}: 'type' must be one of ${providerTypes.join(', ')}`)
}

function openProviders(name: string, type: ProviderType, settings: ProviderSettings, log: Log): Instance['providers'] {
  const { wires, needsKey } = presetOf(type)
  const { wire } = settings
  if (wire !== undefined && !wires.includes(wire))
    throw new Error(`providers.${name}: a provider of type '${type}' does not speak '${wire}'`)
  if (needsKey && settings.apiKey === undefined && settings.apiBase === undefined)
    log.warn({ provider: name, type }, 'a model provider has no api_key, and will refuse every request')
  const [first, ...more] = wire === undefined ? wires : ([wire] as const)
  const open = (one: Wire) => observed(openProvider(name, type, one, settings, log))
  return [open(first), ...more.map(open)]
}

function openProvider(
  name: string,
  type: ProviderType,
  wire: Wire,
  settings: ProviderSettings,
  log: Log,
): ModelProvider {
  const address = settings.apiBase ?? presetOf(type).base
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
  return speaking(origin, upstream, type, settings, log)
}

function speaking(
  origin: Origin,
  upstream: UpstreamConnection,
  type: ProviderType,
  { defaultMaxTokens = DEFAULT_MAX_TOKENS }: ProviderSettings,
  log: Log,
): ModelProvider {
  switch (origin.wire) {
    case 'openai-chat':
      return openAiChatProvider(origin, upstream, presetOf(type).chat ?? plainChat, log)
    case 'openai-responses':
      return openAiResponsesProvider(origin, upstream, { hasFiles: type === 'openai' }, log)
    case 'anthropic':
      return anthropicProvider(
        origin,
        upstream,
        { defaultMaxTokens, replayUnsigned: type !== 'anthropic', hasFiles: type === 'anthropic' },
        log,
      )
    case 'gemini':
      return geminiProvider(origin, upstream, log)
    case 'demo':
      throw new Error('the demo models are no upstream')
    default:
      return origin.wire satisfies never
  }
}

function credentials(wire: Wire, key: string | undefined): Record<string, string> {
  if (wire === 'anthropic') return { 'anthropic-version': '2023-06-01', ...(key !== undefined && { 'x-api-key': key }) }
  if (wire === 'gemini') return key === undefined ? {} : { 'x-goog-api-key': key }
  return key === undefined ? {} : { authorization: `Bearer ${key}` }
}
