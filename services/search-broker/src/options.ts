import { checkSearchOptions, type SearchOptionValues } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { ProviderOption, SearchProvider } from './providers/provider.ts'

/** Options of a provider that a declaration or a workspace may set. */
export const openOptions = ({ options }: { options: readonly ProviderOption[] }): ProviderOption[] =>
  options.filter((option) => !option.operatorOnly)

/** The two lowest layers, which the deployment decides: what the provider's adapter presets, then the instance's own (S-36). */
export const deploymentOptions = (provider: SearchProvider, configured: SearchOptionValues): SearchOptionValues => ({
  ...Object.fromEntries(
    provider.options.flatMap(({ name, default: preset }) => (preset === undefined ? [] : [[name, preset]])),
  ),
  ...configured,
})

/**
 * The options one search runs with. The gateway has refused a declaration's bad options before any model was called; what
 * still does not fit here came from a workspace's policy or an older gateway, and is left out with a warning (S-35).
 */
export function layerOptions(
  provider: SearchProvider,
  deployment: SearchOptionValues,
  requested: Record<string, unknown>,
  log: Log,
): SearchOptionValues {
  const { accepted, problems } = checkSearchOptions(openOptions(provider), requested)
  if (problems.length > 0) {
    log.warn(
      { provider: provider.id, problems: problems.length },
      'search options left out: the provider does not take them',
    )
  }
  return { ...deployment, ...accepted }
}
