import type { Log } from '@tollgate/telemetry'
import type { DiscoveredModel, ModelProvider } from './provider.ts'

export interface Discovery {
  /** What was found last; empty for a provider that has not answered yet, or has no list. */
  of(provider: string): readonly DiscoveredModel[]
  close(): Promise<void>
}

export interface DiscoveryNeeds {
  /** Those whose models are looked for. */
  providers: readonly ModelProvider[]
  everyMs: number
  log: Log
  random?: () => number
}

const LIST_MS = 15_000
/** Of one provider: a list that is longer is cut. */
const MOST_MODELS = 2_000
/** Up to so much of the interval is added by chance, so that replicas do not all ask in one moment. */
const JITTER = 0.2

/** Asks every provider for its models now and then. Nobody ever waits for it; a provider that fails keeps its last list. */
export function openDiscovery({ providers, everyMs, log, random = Math.random }: DiscoveryNeeds): Discovery {
  const found = new Map<string, readonly DiscoveredModel[]>()
  const closing = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let looking = look()

  async function look(): Promise<void> {
    await Promise.all(providers.map(lookAt))
    if (closing.signal.aborted) return
    timer = setTimeout(
      () => {
        looking = look()
      },
      everyMs * (1 + JITTER * random()),
    )
    timer.unref()
  }

  async function lookAt({ name, listModels }: ModelProvider): Promise<void> {
    try {
      const models = await listModels?.({ signal: closing.signal, deadline: Date.now() + LIST_MS })
      if (models) found.set(name, models.slice(0, MOST_MODELS))
    } catch (err) {
      if (!closing.signal.aborted) log.warn({ provider: name, err }, 'the models of a provider could not be listed')
    }
  }

  return {
    of: (provider) => found.get(provider) ?? [],
    async close() {
      closing.abort()
      clearTimeout(timer)
      await looking
    },
  }
}

export const noDiscovery: Discovery = { of: () => [], close: async () => {} }
