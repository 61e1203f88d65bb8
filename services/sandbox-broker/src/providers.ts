import { openProtocol } from './protocol/client.ts'
import type { Provider } from './provider.ts'
import type { SandboxBrokerSettings } from './settings.ts'

/** One line an adapter: `e2b`, or a driver that needs no HTTP, would be another. */
const adapters: Record<string, (settings: SandboxBrokerSettings) => Provider> = {
  protocol: openProtocol,
}

/** A name without an adapter stops the start (CP-28): code that cannot run should not look as if it could. */
export function openProvider(settings: SandboxBrokerSettings): Provider {
  const open = Object.hasOwn(adapters, settings.provider) ? adapters[settings.provider] : undefined
  if (open) return open(settings)
  const known = Object.keys(adapters).join(', ')
  throw new Error(`sandbox_provider is '${settings.provider}', which this version has no adapter for; known: ${known}`)
}
