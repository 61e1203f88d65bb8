import { z } from 'zod'
import { Fault } from './failures.ts'

/**
 * Money is bigint. A `Cost` counts micro-dollars (1e-6 $), a `Rate` hundredths of one (1e-8 $, dollars per unit), and a
 * `PerMillion` is a price of a million units in 1e-8 $. Rounding is half-up and happens once, at the end (P-11).
 */
export type Cost = bigint
export type Rate = bigint
export type PerMillion = bigint

const COST_PLACES = 6
const RATE_PLACES = 8
const MILLION = 1_000_000n

/** A decimal number as text, non-negative, plain notation: what travels in messages and stands in columns. */
export const decimalText = z.string().regex(/^\d{1,15}(\.\d{1,18})?$/, 'must be a non-negative decimal number')

/** "12.5" at 6 places is 12500000n; further digits round half-up. Throws `invalid_request` on anything but a decimal number. */
export function parseDecimal(text: string, places: number): bigint {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text)
  if (!match) throw new Fault('invalid_request', 'not a decimal number')
  const [, sign, whole, fraction = ''] = match
  const kept = BigInt(whole + fraction.slice(0, places).padEnd(places, '0'))
  const rounded = Number(fraction[places] ?? '0') >= 5 ? kept + 1n : kept
  return sign ? -rounded : rounded
}

/** 12500000n at 6 places is "12.5"; no trailing zeros, no exponent. */
export function formatDecimal(value: bigint, places: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(places + 1, '0')
  const fraction = digits.slice(-places).replace(/0+$/, '')
  return `${value < 0n ? '-' : ''}${digits.slice(0, -places)}${fraction ? `.${fraction}` : ''}`
}

export const parseCost = (text: string): Cost => parseDecimal(text, COST_PLACES)
export const formatCost = (cost: Cost): string => formatDecimal(cost, COST_PLACES)
export const parseRate = (text: string): Rate => parseDecimal(text, RATE_PLACES)
export const formatRate = (rate: Rate): string => formatDecimal(rate, RATE_PLACES)

/** A finite JSON number as the decimal text it was written as; 1e-7 becomes "0.0000001". */
export function numberText(value: number): string {
  const text = String(value)
  if (!/e/i.test(text)) return text
  return value.toFixed(20).replace(/\.?0+$/, '')
}

/** Rate of one unit from a price of a million units, kept to 8 places (P-11). */
export const unitRate = (price: PerMillion): Rate => divideHalfUp(price, MILLION)

/** Cost of `units` at a unit rate. */
export const costAtRate = (rate: Rate, units: bigint): Cost => divideHalfUp(rate * units, 100n)

/** Cost of `units` at a price per million: exact up to the one rounding, so cheap tokens lose nothing. */
export const costAtPrice = (price: PerMillion, units: bigint): Cost => divideHalfUp(price * units, MILLION * 100n)

/** A line's unit rate is its cost over its units (P-22). */
export const rateOf = (cost: Cost, units: bigint): Rate => (units === 0n ? 0n : divideHalfUp(cost * 100n, units))

/** Division of non-negative numbers, half-up. */
export function divideHalfUp(numerator: bigint, denominator: bigint): bigint {
  return (2n * numerator + denominator) / (2n * denominator)
}
