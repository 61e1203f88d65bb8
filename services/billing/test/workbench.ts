import { instancePriceKeys, type Tenancy, type ToolLine, type UsageSettled } from '@tollgate/contracts'
import { chargeLate } from '../src/late-calls.ts'
import { releaseHold } from '../src/release.ts'
import { reserver } from '../src/reserve.ts'
import { settler } from '../src/settle.ts'
import { sweepHolds } from '../src/sweep.ts'
import { type ToolEvent, toolLineStore } from '../src/tool-lines.ts'
import { call, reservation, tenancyOf } from './events.ts'
import { type Kind, type Ledger, openLedger } from './ledgers.ts'

/** A ledger with prices in it ($2 in and $10 out for the model, half a cent a search), and what may be done to it. */
export interface Workbench {
  ledger: Ledger
  /** Reserves for a request of its own. */
  hold(): Promise<Tenancy>
  /** Delivers calls as the bus would. */
  report(events: ToolEvent[]): Promise<void>
  settle(events: UsageSettled[]): Promise<void>
  release(tenancy: Tenancy): Promise<void>
  sweep(): Promise<number>
}

export async function openWorkbench(kind: Kind): Promise<Workbench> {
  const ledger = await openLedger(kind)
  await ledger.price('acme:m-large', '2', { outputPricePerMillion: '10' })
  await ledger.price('otari:code_execution', '10000')
  await ledger.price('exa-search', '5000', { kind: 'search' })
  await ledger.book.refresh()
  return { ledger, ...operationsOn(ledger) }
}

/** The same as another replica does it. */
export function operationsOn({ db, book }: Pick<Ledger, 'db' | 'book'>): Omit<Workbench, 'ledger'> {
  const { reserve } = reserver(db, book, false)
  const store = toolLineStore(db)
  return {
    async hold() {
      const tenancy = tenancyOf()
      await reserve(reservation({ tenancy }))
      return tenancy
    },
    async report(events) {
      for (const tenancy of await store(events)) await chargeLate(db, book, tenancy)
    },
    settle: settler(db, book),
    release: (tenancy) => releaseHold(db, book, tenancy.request, tenancy),
    sweep: () => sweepHolds(db, book, 0),
  }
}

export const search = (): ToolLine =>
  call('web_search', { label: 'exa:exa-search', priceKeys: instancePriceKeys('search', 'exa', 'exa-search') })

export const ran = (tenancy: Tenancy, line = search()): ToolEvent => ({ hold: tenancy.request, tenancy, line })
