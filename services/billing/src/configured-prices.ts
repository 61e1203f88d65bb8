import { type PriceKey, parseRate } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import { listPrices, setPrice } from './price-store.ts'

/** A price per call that the configuration gives a search or fetch tool, in dollars per million calls. */
export interface ConfiguredPrice extends PriceKey {
  inputPricePerMillion: string
}

/**
 * Sets the configured prices again where something else is in force: an edit lasts until the next start (P-05). True when
 * something was set.
 */
export async function restorePrices(db: Database, prices: ConfiguredPrice[]): Promise<boolean> {
  let restored = false
  for (const { kind, key, inputPricePerMillion } of prices) {
    const { data } = await listPrices(db, { kind, modelKey: key, current: true, skip: 0, limit: 1 })
    if (data[0] && parseRate(data[0].inputPricePerMillion) === parseRate(inputPricePerMillion)) continue
    await setPrice(db, {
      kind,
      modelKey: key,
      inputPricePerMillion,
      outputPricePerMillion: '0',
      cacheReadPricePerMillion: null,
      cacheWritePricePerMillion: null,
      effectiveAt: new Date().toISOString(),
    })
    restored = true
  }
  return restored
}
