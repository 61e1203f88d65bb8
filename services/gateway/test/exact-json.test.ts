import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { exact, plainNotation, writeJson } from '../src/exact-json.ts'

describe('P-11 decimals in JSON', () => {
  test('P-11 are written digit for digit, beside texts that look like them', () => {
    const row = {
      cost: exact('123456789012345.123456'),
      text: '123456789012345.123456',
      n: 0.1,
      none: null,
      list: [exact('0.000001')],
    }
    expect(writeJson(row)).toBe(
      '{"cost":123456789012345.123456,"text":"123456789012345.123456","n":0.1,"none":null,"list":[0.000001]}',
    )
  })

  test.each([
    ['0', '0'],
    ['00', '0'],
    ['0.0', '0'],
    ['007.50', '7.5'],
    ['1.', '1'],
    ['100', '100'],
    ['100.010', '100.01'],
    ['-0.5', '-0.5'],
  ])('P-11 %s is written %s', (text, written) => {
    expect(writeJson(exact(text))).toBe(written)
  })

  test.each(['', '.5', '1e5', 'NaN', '1,5', '1 ', '0x1', '1.2.3', '--1', '1"'])('%j is no decimal', (text) => {
    expect(() => exact(text)).toThrow('not a decimal')
  })

  test('P-11 whatever else is in a value is written as JSON.stringify writes it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(writeJson(value)).toBe(JSON.stringify(value))
      }),
    )
  })

  test('P-11 a number with an exponent means the same without', () => {
    fc.assert(
      fc.property(fc.nat(999_999), fc.nat(999_999), fc.integer({ min: -20, max: 20 }), (whole, fraction, exponent) => {
        const spelled = `${whole}.${fraction}e${exponent}`
        expect(plainNotation(spelled)).toMatch(/^(0|[1-9]\d*)(\.\d+)?$/)
        expect(Number(plainNotation(spelled))).toBe(Number(spelled))
      }),
    )
  })
})
