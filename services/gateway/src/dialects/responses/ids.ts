import { randomBytes } from 'node:crypto'

/**
 * Ids of items this gateway makes; 32 hex digits follow. Those of tools it ran are told from a provider's by
 * prefix alone. The others mark what only this gateway knows, and no provider is sent them (BR-040).
 */
const prefixes = {
  response: 'resp_',
  message: 'msg_otari_',
  reasoning: 'rs_otari_',
  functionCall: 'fc_otari_',
  output: 'fco_otari_',
  item: 'item_otari_',
  webSearch: 'otari_ws_',
  codeInterpreter: 'otari_ci_',
  container: 'otari_cntr_',
} as const

export const mint = (kind: keyof typeof prefixes): string => prefixes[kind] + randomBytes(16).toString('hex')

export const isMinted = (id: unknown): boolean => typeof id === 'string' && /^(?:otari|[a-z]+_otari)_/.test(id)

export const isGatewaySearch = (id: unknown): boolean => typeof id === 'string' && id.startsWith(prefixes.webSearch)

export const isGatewayCode = (id: unknown): boolean => typeof id === 'string' && id.startsWith(prefixes.codeInterpreter)
