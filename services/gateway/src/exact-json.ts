import { randomUUID } from 'node:crypto'
import { decimalText } from '@tollgate/contracts'
import { z } from 'zod'
import { spellNumbers } from './tools/declared-members.ts'

/** A decimal that is written into JSON as the number it is, digit for digit: a double has 15 sure digits, money may need more. */
export class Exact {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** JSON knows no leading zeros, and trailing ones say nothing. */
export function exact(text: string): Exact {
  const match = /^(-?)0*(\d+)(?:\.(\d*?)0*)?$/.exec(text)
  if (!match) throw new Error('not a decimal')
  const [, sign, whole, fraction] = match
  return new Exact(`${sign}${whole}${fraction ? `.${fraction}` : ''}`)
}
export const exactOrNull = (text: string | null): Exact | null => (text === null ? null : exact(text))

/** In a response: a decimal; in the documentation: a number. */
export const exactNumber = z.custom<Exact>((value) => value instanceof Exact).meta({ type: 'number' })

const mark = randomUUID()
const marked = new RegExp(`"${mark}:([-\\d.]+)"`, 'g')

/** JSON text. Each exact decimal goes in under a mark nobody outside knows, and loses it and its quotes at the end. */
export function writeJson(value: unknown): string {
  let found = false
  const text = JSON.stringify(value, (_key, member: unknown) => {
    if (!(member instanceof Exact)) return member
    found = true
    return `${mark}:${member.text}`
  })
  return found ? text.replace(marked, '$1') : text
}

/** In a request read by `spellNumbers`: a number, or a text with one, as it was spelled. */
export const spelledDecimal = z
  .string('must be a number')
  .transform((spelled) => plainNotation(spelled))
  .pipe(decimalText)
  .meta({ type: 'number', minimum: 0 })

/** A body whose numbers are texts, so that 0.1 stays 0.1 and 12345678901234567.89 keeps its cents. */
export const readSpelled = (bodyText: string): unknown => (bodyText === '' ? undefined : spellNumbers(bodyText))

/** `1.5e-6` as `0.0000015`; anything that is not a number, or has an exponent beyond reason, stays as it is. */
export function plainNotation(spelled: string): string {
  const match = /^(\d+)(?:\.(\d+))?[eE]([+-]?\d{1,2})$/.exec(spelled)
  if (!match) return spelled
  const [, whole = '', fraction = '', exponent = '0'] = match
  const shift = Number(exponent)
  const digits = (whole + fraction).padStart(whole.length + fraction.length + Math.max(0, -shift), '0')
  const point = digits.length - fraction.length + shift
  const padded = digits.padEnd(point, '0')
  const text = `${padded.slice(0, point).replace(/^0+(?=\d)/, '') || '0'}.${padded.slice(point)}`
  return text.replace(/\.?0*$/, (tail) => (tail.includes('.') ? '' : tail))
}
