import type { Log } from '@tollgate/telemetry'
import { e2bDefaults } from './e2b/endpoints.ts'
import { openE2b } from './e2b/provider.ts'
import { openProtocol } from './protocol/client.ts'
import type { Provider } from './provider.ts'
import type { SandboxBrokerSettings } from './settings.ts'

export interface ProviderNeeds {
  settings: SandboxBrokerSettings
  /** The key of a hosted provider, as it is at each call (CFG-53). */
  apiKey(): string | undefined
  log: Log
}

/** One line an adapter. */
const adapters: Record<string, (needs: ProviderNeeds) => Provider | Promise<Provider>> = {
  protocol: ({ settings }) => openProtocol(settings),
  e2b: ({ settings, apiKey, log }) => openE2b({ settings: settings.e2b ?? e2bDefaults, apiKey, log }),
}

/** A name without an adapter stops the start (CP-28): code that cannot run should not look as if it could. */
export async function openProvider(needs: ProviderNeeds): Promise<Provider> {
  const { provider } = needs.settings
  const open = Object.hasOwn(adapters, provider) ? adapters[provider] : undefined
  if (open) return open(needs)
  const known = Object.keys(adapters).join(', ')
  throw new Error(`sandbox_provider is '${provider}', which this version has no adapter for; known: ${known}`)
}
