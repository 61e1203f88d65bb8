import type { Cost } from '@tollgate/contracts'
import { counter, histogram, observe } from '@tollgate/telemetry'
import { TOKENS } from './charge.ts'

/** Tools of MCP servers are counted together: their names come from outside. */
const MCP = 'mcp'
const tools = ['web_search', 'web_fetch', 'code_execution', TOKENS, MCP] as const

const costs = counter('cost_microdollars_total', 'Charged, in millionths of a dollar', { tool: tools })
const sweeps = counter('hold_sweeps_total', 'Requests that were settled because nobody else did', {})
export const settleBatch = histogram(
  'settle_batch_size',
  'Events handled by one statement',
  { event: ['settled', 'tool', 'reserve'] },
  [1, 2, 4, 8, 16, 32, 64],
)

export function countCosts(byTool: Iterable<[string, Cost]>): void {
  for (const [tool, cost] of byTool) {
    if (cost > 0n) costs.add(Number(cost), { tool: tools.find((known) => known === tool) ?? MCP })
  }
}

export const countSweeps = (count: number): void => sweeps.add(count, {})

/** Reservations that wait for the database; the returned function ends the reading. */
export const watchWaiting = (waiting: () => number): (() => void) =>
  observe('billing_reservations_waiting', 'Reservations waiting for a statement', {}, () => [
    { value: waiting(), values: {} },
  ])
