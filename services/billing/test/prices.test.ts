import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chargeFor } from '../src/charge.ts'
import { restorePrices } from '../src/configured-prices.ts'
import { deletePrice, listPrices, setPrice } from '../src/price-store.ts'
import { chargeCalls, none, work } from './charging.ts'
import { call, model } from './events.ts'
import { kinds, type Ledger, openLedger } from './ledgers.ts'

const past = '2026-01-01T00:00:00.000Z'
const later = '2026-02-01T00:00:00.000Z'
const exa = {
  kind: 'search' as const,
  modelKey: 'exa-search',
  inputPricePerMillion: '5000',
  outputPricePerMillion: '0',
  cacheReadPricePerMillion: null,
  cacheWritePricePerMillion: null,
  effectiveAt: past,
}
const all = { current: false, skip: 0, limit: 100 }

describe.each(kinds)('prices in %s', (kind) => {
  let ledger: Ledger
  beforeAll(async () => {
    ledger = await openLedger(kind)
  })
  afterAll(() => ledger.close())
  beforeEach(() => ledger.clearPrices())

  test('P-02 10000 dollars per million make a call cost a cent', async () => {
    await ledger.price('otari:web_search', '10000')
    await ledger.book.refresh()
    expect(chargeCalls([call('web_search')], ledger.book.now()).cost).toBe(10_000n)
  })

  test('P-03 a row is given back as it was set, every digit of it', async () => {
    const row = await setPrice(ledger.db, exa)
    expect(row).toMatchObject(exa)
    const fine = {
      ...exa,
      modelKey: 'fine',
      inputPricePerMillion: '123456789012345.123456789012345678',
      cacheReadPricePerMillion: '0.10',
    }
    expect(await setPrice(ledger.db, fine)).toMatchObject(fine)
    expect(await listPrices(ledger.db, { ...all, modelKey: 'exa-search' })).toEqual({ data: [row], count: 1 })
  })

  test('P-03 versions are kept apart by their time, and the one in force is the latest that has begun', async () => {
    await setPrice(ledger.db, exa)
    await setPrice(ledger.db, { ...exa, inputPricePerMillion: '6000', effectiveAt: later })
    await setPrice(ledger.db, { ...exa, inputPricePerMillion: '7000', effectiveAt: '2999-01-01T00:00:00.000Z' })
    const { data, count } = await listPrices(ledger.db, { ...all, kind: 'search' })
    expect(data.map((row) => row.inputPricePerMillion)).toEqual(['7000', '6000', '5000'])
    expect(count).toBe(3)
    const current = await listPrices(ledger.db, { ...all, current: true })
    expect(current.data.map((row) => row.inputPricePerMillion)).toEqual(['6000'])
    expect(current.count).toBe(1)
  })

  test('P-03 the same version set again is one row with the new rates', async () => {
    const first = await setPrice(ledger.db, exa)
    const second = await setPrice(ledger.db, { ...exa, inputPricePerMillion: '1' })
    expect(second).toEqual({ ...first, inputPricePerMillion: '1' })
    expect((await listPrices(ledger.db, all)).count).toBe(1)
  })

  test('P-04 rows of each kind live side by side under one name', async () => {
    for (const kind of ['model', 'search', 'fetch'] as const)
      await setPrice(ledger.db, { ...exa, kind, modelKey: 'deepseek' })
    expect((await listPrices(ledger.db, { ...all, modelKey: 'deepseek' })).count).toBe(3)
    expect(await deletePrice(ledger.db, { kind: 'search', key: 'deepseek' })).toBe(1)
    const { data } = await listPrices(ledger.db, { ...all, modelKey: 'deepseek' })
    expect(data.map((row) => row.kind)).toEqual(['fetch', 'model'])
  })

  test.each(['exa:main', 'a/b', '', 'x'.repeat(513)])('P-04 a search row cannot be keyed %j', async (modelKey) => {
    await expect(setPrice(ledger.db, { ...exa, modelKey })).rejects.toMatchObject({ failure: 'invalid_value' })
  })

  test('a deleted price is gone from the list and still prices what began before', async () => {
    await ledger.price('acme:m-large', '2')
    const before = new Date()
    await expect.poll(() => Date.now()).toBeGreaterThan(before.getTime())
    expect(await deletePrice(ledger.db, model('acme:m-large'))).toBe(1)
    expect(await deletePrice(ledger.db, model('acme:m-large'))).toBe(0)
    await ledger.book.refresh()
    expect((await listPrices(ledger.db, all)).count).toBe(0)
    const tokens = { ...none, input: 1_000_000 }
    const cost = (beganAt: Date) => chargeFor(work({ tokens, beganAt, endedAt: beganAt }), ledger.book.now()).cost
    expect(cost(before)).toBe(2_000_000n)
    expect(cost(new Date(Date.now() + 1_000))).toBeNull()
    await ledger.price('acme:m-large', '3')
    expect((await listPrices(ledger.db, all)).data).toMatchObject([{ inputPricePerMillion: '3' }])
  })

  test('pages are whole and in order', async () => {
    for (const name of ['b', 'a', 'c']) await setPrice(ledger.db, { ...exa, modelKey: name })
    const page = async (skip: number) =>
      (await listPrices(ledger.db, { ...all, skip, limit: 2 })).data.map((row) => row.modelKey)
    expect(await page(0)).toEqual(['a', 'b'])
    expect(await page(2)).toEqual(['c'])
  })

  test('another replica reads them again only when they changed', async () => {
    const other = await ledger.replica()
    expect(await other.book.refresh()).toBe(false)
    await ledger.price('otari:web_search', '10000')
    expect(await other.book.refresh()).toBe(true)
    expect(chargeCalls([call('web_search')], other.book.now()).cost).toBe(10_000n)
    expect(await other.book.refresh()).toBe(false)
  })

  test('P-05 a configured price is set again at a start that finds another, and only then', async () => {
    const configured = [{ kind: 'search' as const, key: 'exa-search', inputPricePerMillion: '5000' }]
    expect(await restorePrices(ledger.db, configured)).toBe(true)
    expect(await restorePrices(ledger.db, [{ ...configured[0]!, inputPricePerMillion: '5000.00' }])).toBe(false)
    await setPrice(ledger.db, { ...exa, inputPricePerMillion: '1', effectiveAt: new Date().toISOString() })
    await expect.poll(() => restorePrices(ledger.db, configured)).toBe(true)
    const { data } = await listPrices(ledger.db, { ...all, current: true })
    expect(data).toMatchObject([{ inputPricePerMillion: '5000' }])
  })

  test('many changes at once lose none', async () => {
    await Promise.all(Array.from({ length: 10 }, (_, n) => setPrice(ledger.db, { ...exa, modelKey: `k${n}` })))
    await ledger.book.refresh()
    expect((await listPrices(ledger.db, all)).count).toBe(10)
  })
})
