import { BUILTIN_FETCH, builtinFetchLabel, instancePriceKeys, otariLabel, otariPriceKeys } from '@tollgate/contracts'
import type { CallKind } from '@tollgate/mcp-web'
import type { DirectCall } from './direct-call.ts'

/** How calls of each kind are named and priced where nothing but the deployment's own settings serves them (P-07, P-08). */
export const servedHere: Record<CallKind, Pick<DirectCall, 'tool' | 'served' | 'label' | 'priceKeys'>> = {
  web_fetch: {
    tool: 'web_fetch',
    served: { name: BUILTIN_FETCH, provider: 'builtin' },
    label: builtinFetchLabel,
    priceKeys: instancePriceKeys('fetch', 'builtin', BUILTIN_FETCH),
  },
  web_search: {
    tool: 'web_search',
    served: { name: 'web_search', provider: 'otari' },
    label: otariLabel('web_search'),
    priceKeys: otariPriceKeys('web_search'),
  },
}
