import { parseArray } from './array-text.ts'

/** Reads a value from the text the database sends. */
export type Parser = (text: string) => unknown

const asText: Parser = (text) => text

/**
 * What each Postgres type is in JavaScript, the same for both databases: whole numbers of 64 bits (and so `count`) are
 * bigint, `numeric` (and so a sum of int8) is its exact text. Types that are not listed are text, dates without a time
 * zone among them: which instant they mean is not the driver's to guess.
 */
const scalars: Readonly<Record<number, Parser>> = {
  16: (text) => text === 't',
  17: (text) => Buffer.from(text.slice(2), 'hex'),
  20: BigInt,
  21: Number,
  23: Number,
  26: Number,
  114: (text) => JSON.parse(text),
  700: Number,
  701: Number,
  1082: asText,
  1114: asText,
  1184: (text) => new Date(text),
  1186: asText,
  1700: asText,
  3802: (text) => JSON.parse(text),
}

/** Array types whose elements are read as their own type is; other arrays are text. */
const arrayElements: Readonly<Record<number, number>> = {
  199: 114,
  1000: 16,
  1005: 21,
  1007: 23,
  1009: 25,
  1015: 1043,
  1016: 20,
  1021: 700,
  1022: 701,
  1115: 1114,
  1182: 1082,
  1185: 1184,
  1231: 1700,
  2951: 2950,
  3807: 3802,
}

export const parsers: Readonly<Record<number, Parser>> = {
  ...scalars,
  ...Object.fromEntries(
    Object.entries(arrayElements).map(([array, element]): [string, Parser] => {
      const parse = scalars[element] ?? asText
      return [array, (text) => parseArray(text, parse)]
    }),
  ),
}

export const parserOf = (type: number): Parser => parsers[type] ?? asText
