import { numberText, type SeatSettings } from '@tollgate/contracts'

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
  if (executed.length === 0 && delegated === undefined) return undefined
  return {
    name,
    executed,
    delegated,
    fees: feesOf(settings),
    maxCalls: settings.provider_tool_max_calls,
    maxResultTokens: settings.provider_tool_max_result_tokens,
    contextTokens: settings.context_window,
    servesKeyword: settings.web_search_keyword === 'provider_tool',
  }
}

/** Decimal dollars a call, by the tool's name. */
export const feesOf = ({ provider_tool_fees: fees }: SeatSettings): Map<string, string> =>
  new Map(Object.entries(fees).map(([tool, fee]) => [tool, typeof fee === 'number' ? numberText(fee) : fee]))
