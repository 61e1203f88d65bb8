import type { Bus } from '@tollgate/bus'
import type { PriceKey, Tenancy } from '@tollgate/contracts'
import type { CallAt, CallKind, Outcome } from '@tollgate/mcp-web'
import type { Log } from '@tollgate/telemetry'
import type { Identities } from '../auth/identities.ts'
import type { RateLimit } from '../auth/rate-limit.ts'
import { endingOf, faultOf } from '../loop/answering.ts'
import { measured } from '../loop/measured.ts'
import { type RanCall, reserve } from '../loop/tally.ts'
import { meterUsage } from '../loop/usage.ts'
import type { KnownPolicies } from '../policies/known-policies.ts'
import type { GatewaySettings } from '../settings.ts'

/** What routes that run tools by themselves need of the gateway. */
export interface DirectNeeds {
  bus: Bus
  log: Log
  settings: GatewaySettings
  identities: Identities
  policies: Pick<KnownPolicies, 'of'>
  rateLimit: RateLimit
}

/** The kinds of tool that are run without a model. */
export type DirectKind = CallKind | 'code_execution'

export interface DirectCall {
  tool: DirectKind
  /** What the usage row names in place of a model and its provider (D-14). */
  served: { name: string; provider: string }
  /** Who serves it when no answer says, and what prices it (P-20). */
  label: string
  priceKeys: PriceKey[]
  /** The path of the API, as it stands in the usage row. */
  endpoint: string
  tenancy: Tenancy
  budgetExempt: boolean
  signal: AbortSignal
  deadline: number
  /** The last thing that can refuse the call; the money set aside for it then goes back. */
  lastCheck?: () => void
}

/**
 * One call of a tool that no model asked for: reserved, measured, recorded and settled as a call within a completion is.
 * A success is charged, a failure is recorded and costs nothing, a call nobody waits for any more leaves nothing.
 */
export async function directCall<T>(
  { bus, log }: Pick<DirectNeeds, 'bus' | 'log'>,
  call: DirectCall,
  run: (at: CallAt) => Promise<Outcome<T>>,
): Promise<Outcome<T>> {
  const { tool, served, tenancy, signal, deadline } = call
  const tally = await reserve(
    { bus, log, tenancy, usage: meterUsage('allow_free') },
    {
      endpoint: call.endpoint,
      model: { ...served, isTool: true },
      tools: [{ tool, keys: call.priceKeys }],
      estimate: { inputTokens: 0, outputTokens: 0 },
      budgetExempt: call.budgetExempt,
      deadline,
      signal,
    },
  )
  try {
    call.lastCheck?.()
    const { outcome, ...ran } = await measured(tool, tenancy.request, log, async () => ranAs(call, await run(call)))
    // nobody is charged for an answer that came after the caller had left (WM-09)
    signal.throwIfAborted()
    await tally.toolRan(tool, { ...ran, outcome }, tenancy)
    const { came } = outcome
    await tally.settle(came.ok ? { status: 'success' } : { status: 'error', error: came.failure })
    return came
  } catch (thrown) {
    const fault = faultOf(thrown, signal)
    // the hold stays, and with it what the call costs: the sweep settles it
    await tally.settle(endingOf(fault)).catch((err: unknown) => {
      log.error({ request: tenancy.request, err }, 'a request could not be settled')
    })
    throw fault
  }
}

type Ran<T> = RanCall & { outcome: { isError: boolean; came: Outcome<T> }; cause?: unknown }

function ranAs<T>({ label, priceKeys }: DirectCall, came: Outcome<T>): Ran<T> {
  return {
    outcome: { isError: !came.ok || came.isError === true, came },
    label: came.label ?? label,
    priceKeys,
    ...(came.ok ? { reportedCost: came.reportedCost } : { cause: came.cause }),
  }
}
