import type { Bus } from '@tollgate/bus'
import {
  type absorbedAttempt,
  billingRelease,
  billingReserve,
  Fault,
  type PriceKey,
  type Tenancy,
  type toolLine,
  usageSettled,
  usageTool,
} from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { z } from 'zod'
import { UpstreamFault } from '../models/upstream-fault.ts'
import type { ToolResult } from '../tools/tool.ts'
import type { UsageMeter } from './usage.ts'

const RESERVE_MS = 10_000
/** A record is published again until then; it does not end with the request it is about. */
const RECORD_MS = 10_000
/** How long after a request's last moment its settlement may still be under way before a sweep takes over. */
const SWEEP_AFTER_MS = 60_000

type ToolLine = z.infer<typeof toolLine>
type AbsorbedAttempt = z.infer<typeof absorbedAttempt>

export interface Model {
  name: string
  provider: string
  /** A tool that was called by itself: it has no tokens to price. */
  isTool?: true
}

export interface Reservation {
  endpoint: string
  model: Model
  /** Whose price the estimate is made with, where another candidate costs more. */
  pricedLike?: Model
  tools: { tool: string; keys: PriceKey[] }[]
  estimate: { inputTokens: number; outputTokens: number }
  budgetExempt: boolean
  deadline: number
  signal: AbortSignal
}

/** What one request owes. It is settled or released exactly once, whichever way the request ends. */
export interface Tally {
  /** One tool call that ran, recorded at once: from here on the charge survives this process. */
  toolRan(tool: string, result: RanCall, tenancy: Tenancy): Promise<void>
  /** The model that is tried now; the one that was tried before, if any, leaves a row of its own (P-45). */
  attempt(attempt: number, model: Model): void
  /** Why the attempt under way was given up for another. */
  absorbed(fault: Fault): void
  /** A candidate that was not asked, and in whose place others were (P-49). */
  passedOver(attempt: number, model: Model, reason: string): void
  /** Tells billing how the request ended; a second call does nothing. Resolves when that is stored. */
  settle(ending: Ending): Promise<void>
}

/** What a charge needs to know of a tool's result. */
export type RanCall = Pick<ToolResult, 'label' | 'priceKeys' | 'reportedCost'> & {
  outcome: { isError: boolean }
  /** Tokens that the next request's prompt will hold of its result, where somebody told. */
  resultTokens?: number | undefined
}

export type Ending = { status: 'success' } | { status: 'error' | 'cancelled'; error: string }

interface Needs {
  bus: Bus
  log: Log
  tenancy: Tenancy
  usage: Pick<UsageMeter, 'asked' | 'total'>
}

/** Writes the hold before any model is called (P-15, A-15), and opens the tally that will close it. */
export async function reserve({ bus, log, tenancy, usage }: Needs, reservation: Reservation): Promise<Tally> {
  const { endpoint, tools, estimate, budgetExempt, deadline, signal } = reservation
  const began = performance.now()
  const { model: first } = reservation
  let current = { attempt: 0, model: first, began }
  const absorbed: AbsorbedAttempt[] = []
  const lines: ToolLine[] = []
  let ended = false

  const { hold } = await bus.call(
    billingReserve,
    {
      tenancy,
      endpoint,
      model: first.name,
      provider: first.provider,
      modelKeys: modelKeys(reservation.pricedLike ?? first),
      tools,
      estimate,
      budgetExempt,
      endsAt: deadline + SWEEP_AFTER_MS,
    },
    // not ended by the signal: a hold that was written and not heard of could not be given back
    { deadline: Math.min(deadline, Date.now() + RESERVE_MS) },
  )
  if (signal.aborted) {
    await release()
    throw signal.reason
  }

  return {
    async toolRan(tool, { outcome, label, priceKeys, reportedCost, resultTokens }, at) {
      const line: ToolLine = {
        id: `${hold}.${lines.length}`,
        tool,
        label,
        priceKeys,
        outcome: outcome.isError ? 'error' : 'ok',
        ...(reportedCost !== undefined && { reportedCost }),
        ...(resultTokens !== undefined && { resultTokens }),
        at: new Date().toISOString(),
      }
      lines.push(line)
      await bus.record(usageTool, line.id, { hold, tenancy: at, line }, { deadline: Date.now() + RECORD_MS })
    },
    attempt(attempt, tried) {
      current = { attempt, model: tried, began: performance.now() }
    },
    absorbed(fault) {
      const { attempt, model } = current
      absorbed.push({
        attempt,
        model: model.name,
        provider: model.provider,
        error: errorText(fault),
        durationMs: Math.round(performance.now() - current.began),
      })
    },
    passedOver(attempt, { name, provider }, reason) {
      absorbed.push({ attempt, model: name, provider, error: `Skipped: ${reason}`, durationMs: 0 })
    },
    async settle(ending) {
      if (ended) return
      ended = true
      if (!usage.asked() && lines.length === 0) return release()
      const { tokens, estimated } = usage.total()
      const { attempt, model } = current
      const settled = {
        hold,
        tenancy: { ...tenancy, attempt },
        at: new Date().toISOString(),
        endpoint,
        model: model.name,
        provider: model.provider,
        priceKeys: modelKeys(model),
        tokens,
        estimated,
        lines,
        status: ending.status,
        error: ending.status === 'success' ? null : ending.error,
        durationMs: Math.round(performance.now() - began),
        absorbed,
      }
      await bus.record(usageSettled, `${hold}.settled`, settled, { deadline: Date.now() + RECORD_MS })
    },
  }

  /** No work was done (P-46). Should this be lost, the sweep gives the hold back at its end. */
  async function release(): Promise<void> {
    await bus
      .call(billingRelease, { tenancy, hold }, { deadline: Date.now() + RECORD_MS })
      .catch((thrown: unknown) => log.warn({ hold, failure: Fault.from(thrown).failure }, 'a hold waits for the sweep'))
  }
}

/** A failure as it stands in the activity log: its name, and what the operator is told of it (PE-52). */
export const errorText = (fault: Fault): string =>
  fault instanceof UpstreamFault && fault.note !== undefined ? `${fault.failure}: ${fault.note}` : fault.failure

export const modelKeys = ({ name, provider, isTool }: Model): PriceKey[] =>
  isTool ? [] : [{ kind: 'model', key: `${provider}:${name}` }]
