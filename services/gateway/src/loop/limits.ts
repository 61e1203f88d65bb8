import { Fault } from '@tollgate/contracts'
import type { GatewaySettings } from '../settings.ts'
import type { Capabilities } from '../tools/capabilities.ts'
import type { WebCalls } from '../tools/tool.ts'
import { webFetch } from '../tools/web-fetch.ts'
import { webSearch } from '../tools/web-search.ts'
import type { Plan } from './plan.ts'

/** Fixed for requests that the older backend serves, whatever the setting says (L-22). */
const OLDER_BACKEND_CALLS = 10

/** Ends the request: past the older backend's limit there is no answer to be had (L-22). */
export class CallLimitReached extends Fault {
  constructor() {
    super('invalid_value', `Web Retrieval is limited to ${OLDER_BACKEND_CALLS} calls per request`)
  }
}

/** Counts the searches and fetches of one request, those that fail included, over rounds and attempts (L-20). */
export function countWebCalls({
  webSearchMaxCalls,
}: GatewaySettings): WebCalls & { serve(plan: Plan, capabilities: Capabilities): void } {
  let taken = 0
  let older = false
  return {
    /** Says what the attempt runs on: a search on the legacy settings, or fetch alone, is the older backend's. */
    serve({ owned }, { search }) {
      older = owned.has(webSearch.name) ? search?.kind === 'legacy' : owned.has(webFetch.name)
    },
    take(tool) {
      if (older && taken >= OLDER_BACKEND_CALLS) throw new CallLimitReached()
      if (!older && taken >= webSearchMaxCalls) return `${tool} call limit reached for this request`
      taken += 1
      return undefined
    },
  }
}
