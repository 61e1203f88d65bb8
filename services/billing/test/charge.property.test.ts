import { parseRate } from '@tollgate/contracts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { chargeFor } from '../src/charge.ts'
import { priceTable } from '../src/price-table.ts'
import { call, model } from './events.ts'

/** A fraction, so that the expectation shares no rounding and no scale with what it checks. */
type Fraction = [bigint, bigint]
const plus = ([a, b]: Fraction, [c, d]: Fraction): Fraction => [a * d + c * b, b * d]
const times = ([a, b]: Fraction, n: number): Fraction => [a * BigInt(n), b]
const zero: Fraction = [0n, 1n]
function fraction(decimal: string): Fraction {
  const [whole = '', places = ''] = decimal.split('.')
  return [BigInt(whole + places), 10n ** BigInt(places.length)]
}
/** To so many decimal places, ties away from zero, as text. */
function rounded([numerator, denominator]: Fraction, places: number): string {
  const scaled = numerator * 10n ** BigInt(places)
  const whole = scaled / denominator
  const up = (scaled % denominator) * 2n >= denominator ? whole + 1n : whole
  const digits = String(up).padStart(places + 1, '0')
  return `${digits.slice(0, -places)}.${digits.slice(-places)}`
}

const decimal = (mostWhole: number, places: number) =>
  fc
    .tuple(
      fc.integer({ min: 0, max: mostWhole }),
      fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: places }),
    )
    .map(([whole, digits]) => `${whole}.${digits}`)
const count = fc.integer({ min: 0, max: 5_000_000 })

test('what a request costs is the exact decimal sum of its lines, each rounded once', () => {
  fc.assert(
    fc.property(
      fc.record({ input: count, output: count, cacheRead: count, cacheWrite: count }),
      fc.record({
        input: decimal(500, 8),
        output: decimal(500, 8),
        cacheRead: decimal(50, 8),
        toolPrice: decimal(100_000, 4),
      }),
      fc.array(fc.record({ reported: fc.option(decimal(3, 18), { nil: undefined }), failed: fc.boolean() }), {
        maxLength: 30,
      }),
      (tokens, rate, calls) => {
        const charge = chargeFor(
          {
            provider: 'acme',
            model: 'm',
            priceKeys: [model('acme:m')],
            tokens: { ...tokens, reasoning: 0 },
            estimated: false,
            calls: calls.map(({ reported, failed }) =>
              call('lookup', {
                outcome: failed ? 'error' : 'ok',
                ...(reported === undefined ? {} : { reportedCost: reported }),
              }),
            ),
            beganAt: new Date(),
            endedAt: new Date(),
          },
          priceTable(
            [
              { key: 'acme:m', input: rate.input, output: rate.output, cacheRead: rate.cacheRead },
              { key: 'otari:lookup', input: rate.toolPrice, output: '0', cacheRead: '0' },
            ].map(({ key, input, output, cacheRead }) => ({
              ...model(key),
              price: {
                input: parseRate(input),
                output: parseRate(output),
                cacheRead: parseRate(cacheRead),
                cacheWrite: null,
              },
              effectiveAt: 0,
              deletedAt: Number.POSITIVE_INFINITY,
            })),
          ),
        )
        const perToken = (price: string, n: number): Fraction => times(plus(fraction(price), zero), n)
        const expected = new Map<string, string>()
        const meters = {
          input_tokens: rate.input,
          output_tokens: rate.output,
          cache_read_tokens: rate.cacheRead,
          cache_write_tokens: rate.input,
        }
        const units = {
          input_tokens: tokens.input,
          output_tokens: tokens.output,
          cache_read_tokens: tokens.cacheRead,
          cache_write_tokens: tokens.cacheWrite,
        }
        for (const [meter, price] of Object.entries(meters)) {
          const [n, d] = perToken(price, units[meter as keyof typeof units])
          if (units[meter as keyof typeof units] > 0) expected.set(meter, rounded([n, d * 1_000_000n], 6))
        }
        const [n, d] = fraction(rate.toolPrice)
        const perCall = fraction(rounded([n, d * 1_000_000n], 8))
        const ran = calls.filter(({ failed }) => !failed)
        const toolSum = ran.reduce(
          (sum, { reported }) => plus(sum, reported === undefined ? perCall : fraction(reported)),
          zero,
        )
        if (ran.length > 0) expected.set('lookup_calls', rounded(toolSum, 6))

        expect(new Map(charge.breakdown.map(({ meter, cost }) => [meter, cost]))).toEqual(expected)
        const total = [...expected.values()].reduce((sum, cost) => plus(sum, fraction(cost)), zero)
        expect(charge.cost).not.toBeNull()
        expect(rounded([charge.cost!, 1_000_000n], 6)).toBe(rounded(total, 6))
        for (const line of charge.breakdown) {
          const [a, b] = fraction(line.cost!)
          expect(line.unitRate).toBe(rounded([a, b * BigInt(line.units)], 8))
        }
      },
    ),
    { numRuns: 300 },
  )
})
