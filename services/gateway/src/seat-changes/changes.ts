import { type SeatSettings, seatFields } from '@tollgate/contracts'
import { z } from 'zod'

/** What can be changed of a seat while the gateway runs: all but which model it stands for. Null: none. */
export const seatChanges = z
  .strictObject({
    ...seatFields,
    delegated_search: seatFields.delegated_search.nullable(),
    provider_tool_max_result_tokens: seatFields.provider_tool_max_result_tokens.nullable(),
    context_window: seatFields.context_window.nullable(),
  })
  .partial()
export type SeatChanges = z.infer<typeof seatChanges>

/** The seat as it is in force: what was changed, and the configuration for the rest. */
export function changed(configured: SeatSettings, changes: SeatChanges): SeatSettings {
  const given = Object.entries({ ...configured, ...changes }).filter(([, value]) => value != null)
  return Object.fromEntries(given) as SeatSettings
}
