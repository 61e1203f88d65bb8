import { numberText, type SeatSettings, seatMistake } from '@tollgate/contracts'

/** What the backend of a configured model runs by itself, and on which terms. It belongs to the endpoint (PE-03). */
export interface SeatTools {
  /** The seat's name in the configuration. */
  name: string
  /** Declared beside the client's functions, and run by the backend. */
  executed: readonly string[]
  /** The backend's search tool that it takes only alone (PE-35). */
  delegated: string | undefined
  /** Decimal dollars a call, by the tool's name. */
  fees: ReadonlyMap<string, string>
  maxCalls: number
  maxResultTokens: number | undefined
  contextTokens: number | undefined
  /** A client's search keyword that does not run here is this tool's to serve (PE-65). */
  servesKeyword: boolean
}

/** Undefined for a seat whose backend runs nothing: it is a name and no more (PE-01). */
export function seatTools(name: string, settings: SeatSettings): SeatTools | undefined {
  const { provider_executed_tools: executed, delegated_search: delegated } = settings
  const mistake = seatMistake(name, settings)
  if (mistake !== undefined) throw new Error(mistake)
  if (executed.length === 0 && delegated === undefined) return undefined
  return {
    name,
    executed,
    delegated,
    fees: new Map(Object.entries(settings.provider_tool_fees).map(([tool, fee]) => [tool, feeText(fee)])),
    maxCalls: settings.provider_tool_max_calls,
    maxResultTokens: settings.provider_tool_max_result_tokens,
    contextTokens: settings.context_window,
    servesKeyword: settings.web_search_keyword === 'provider_tool',
  }
}

const feeText = (fee: number | string): string => (typeof fee === 'number' ? numberText(fee) : fee)
