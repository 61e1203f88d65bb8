import { BUILTIN_FETCH, Fault } from '@tollgate/contracts'
import type { GatewaySettings } from '../settings.ts'
import type { Capabilities } from './capabilities.ts'
import type { BuiltIn } from './tool.ts'

/** Tools by name that are configured and cannot run while nobody says how, with what a request that needs one is told. */
export type Away = ReadonlyMap<string, () => Fault>

/** Whether the deployment has the tool, be it away just now. */
export const isConfigured = (tool: BuiltIn, capabilities: Capabilities): boolean =>
  tool.available(capabilities) || capabilities.away?.has(tool.name) === true

const later = (what: string) => () => new Fault('unavailable', `${what} temporarily unavailable. Retry later.`)

/** S-39 */
const unreachable = () =>
  new Fault(
    'upstream',
    "web_search backend unreachable. Check the search URL in the dashboard's Tools settings, or OTARI_WEB_SEARCH_URL, and that the backend is running.",
  )

/** What is configured of what the brokers have that were not heard: not to be told from nothing by their silence alone. */
export function awayOf(settings: GatewaySettings, heard: { search: boolean; sandbox: boolean }): Away | undefined {
  const away = new Map<string, () => Fault>()
  if (!heard.search) {
    const search = searchOf(settings)
    if (search) away.set('web_search', search === 'legacy' ? unreachable : later('web_search backend'))
    if (settings.webFetchEnabled && wantsInstance(settings)) away.set('web_fetch', later('web_fetch backend'))
  }
  if (!heard.sandbox && hasSandbox(settings)) away.set('code_execution', later('code_execution sandbox'))
  return away.size > 0 ? away : undefined
}

/** Such pages are not fetched from here while nobody says that the name is unknown: they are somebody else's to fetch. */
const wantsInstance = ({ webFetchDefaultTool }: GatewaySettings): boolean =>
  webFetchDefaultTool !== undefined && webFetchDefaultTool !== BUILTIN_FETCH

/** S-30, as far as settings tell. */
function searchOf(settings: GatewaySettings): 'instance' | 'legacy' | undefined {
  const { webSearchDefaultTool: named, webSearchUrl, webSearchProvider, brokersHave } = settings
  if (named?.toLowerCase() === 'none') return undefined
  if (named !== undefined && brokersHave.searchTools.includes(named)) return 'instance'
  if (webSearchUrl !== undefined || webSearchProvider !== undefined) return 'legacy'
  return brokersHave.searchTools.length === 1 ? 'instance' : undefined
}

/** T-02, as far as settings tell. */
const hasSandbox = ({ sandboxUrl, brokersHave }: GatewaySettings): boolean =>
  sandboxUrl !== undefined || brokersHave.hostedSandbox
