import { join } from 'node:path'
import {
  billingDeletePrice,
  billingPrices,
  billingQuote,
  billingRelease,
  billingReserve,
  billingSetPrice,
  billingUsage,
  billingUsageByTool,
  changedPrices,
  usageSettled,
  usageTool,
} from '@tollgate/contracts'
import { type Database, migrate } from '@tollgate/db'
import type { CommonNeeds, Running } from '@tollgate/service'
import { type ConfiguredPrice, restorePrices } from './configured-prices.ts'
import { chargeLate } from './late-calls.ts'
import { settleBatch, watchWaiting } from './metrics.ts'
import { openPriceBook } from './price-book.ts'
import { deletePrice, listPrices, setPrice } from './price-store.ts'
import { releaseHold } from './release.ts'
import { repeat } from './repeat.ts'
import { quote, reserver } from './reserve.ts'
import { settler } from './settle.ts'
import { SWEEP_BATCH, sweepHolds } from './sweep.ts'
import { toolLineStore } from './tool-lines.ts'
import { usageByTool } from './usage-by-tool.ts'
import { listUsage } from './usage-list.ts'

export interface BillingNeeds extends CommonNeeds {
  db: Database
  /** Refuse work that nothing prices before it is done (P-15). */
  requirePricing: boolean
  sweepEveryMs: number
  /** How long after its end a hold is left alone: its settlement may still be on its way. */
  sweepGraceMs?: number
  /** A price set elsewhere counts here after this long at the latest, should its announcement be lost. */
  pricesEveryMs?: number
  /** Prices that the configuration sets at every start (P-05). */
  configuredPrices?: ConfiguredPrice[]
}

/** Events of one statement, and how long the first waits for others: a statement costs more than its rows. */
const together = { batch: 64, lingerMs: 20 }
const READY_MS = 1_000

/** Prices work, holds its estimate, and turns what ran into one usage row a request. */
export async function startBilling(needs: BillingNeeds): Promise<Running> {
  const { bus, log, db, requirePricing, sweepEveryMs, sweepGraceMs = 30_000, pricesEveryMs = 15_000 } = needs
  await migrate(db, { schema: 'billing', folder: join(import.meta.dirname, 'migrations') })
  if (await restorePrices(db, needs.configuredPrices ?? [])) bus.announce(changedPrices, {})

  const book = await openPriceBook(db)
  const { reserve, waiting } = reserver(db, book, requirePricing)
  const settle = settler(db, book)
  const keepLines = toolLineStore(db)
  const pricesChanged = async () => {
    await book.refresh()
    bus.announce(changedPrices, {})
  }

  bus.listen(changedPrices, () => {
    book.refresh().catch((err) => log.warn({ err }, 'changed prices could not be read; the next look tries again'))
  })
  await bus.serve(billingReserve, async (request, { signal }) => ({ hold: await reserve(request, signal) }))
  await bus.serve(billingQuote, (chain) => quote(book, requirePricing, chain))
  await bus.serve(billingRelease, async ({ hold, tenancy }) => {
    await releaseHold(db, book, hold, tenancy)
    return {}
  })
  await bus.serve(billingSetPrice, async (price) => {
    const row = await setPrice(db, price)
    await pricesChanged()
    return row
  })
  await bus.serve(billingDeletePrice, async ({ kind, modelKey }) => {
    const deleted = await deletePrice(db, { kind, key: modelKey })
    await pricesChanged()
    return { deleted }
  })
  await bus.serve(billingPrices, (filter) => listPrices(db, filter))
  await bus.serve(billingUsage, (filter) => listUsage(db, filter))
  await bus.serve(billingUsageByTool, (filter) => usageByTool(db, filter))
  await bus.consume(usageTool, { durable: 'billing-tool', ...together }, async (events) => {
    for (const tenancy of await keepLines(events)) await chargeLate(db, book, tenancy)
    settleBatch.record(events.length, { event: 'tool' })
  })
  await bus.consume(usageSettled, { durable: 'billing-settled', ...together }, settle)

  const sweeping = repeat(
    sweepEveryMs,
    async (stopping) => {
      let full = true
      while (full && !stopping.aborted) full = (await sweepHolds(db, book, sweepGraceMs)) === SWEEP_BATCH
    },
    (err) => log.error({ err }, 'a sweep failed; the next one tries again'),
  )
  const reading = repeat(
    pricesEveryMs,
    async () => void (await book.refresh()),
    (err) => log.warn({ err }, 'prices could not be read; the next look tries again'),
  )
  const unwatch = watchWaiting(waiting)

  return {
    notReady: () => db.ping(READY_MS),
    async close(deadline) {
      unwatch()
      const ended = await Promise.all([sweeping.stop(deadline), reading.stop(deadline)])
      return ended.every(Boolean)
    },
  }
}
