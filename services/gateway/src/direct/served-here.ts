import { BUILTIN_FETCH, builtinFetchLabel, instancePriceKeys, otariLabel, otariPriceKeys } from '@tollgate/contracts'
import type { DirectCall, DirectKind } from './direct-call.ts'

/** How calls of each kind are named and priced where nothing but the deployment's own settings serves them (P-07, P-08). */
export const servedHere: Record<DirectKind, Pick<DirectCall, 'tool' | 'served' | 'label' | 'priceKeys'>> = {
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
  code_execution: {
    tool: 'code_execution',
    served: { name: 'code_execution', provider: 'otari' },
    label: otariLabel('code_execution'),
    priceKeys: otariPriceKeys('code_execution'),
  },
}
