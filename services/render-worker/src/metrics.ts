import { fetchFailure } from '@tollgate/contracts'
import { counter, histogram } from '@tollgate/telemetry'
import { browserEnds } from './browser.ts'

export const renderOutcomes = ['ok', ...fetchFailure.options, 'cancelled', 'error'] as const
export type RenderOutcome = (typeof renderOutcomes)[number]

export const renderSeconds = histogram('render_seconds', 'Time a page took in the browser.', {
  outcome: renderOutcomes,
})
export const browserRestarts = counter('render_browser_ends_total', 'Browsers that ended.', { why: browserEnds })
