import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { configSchema } from '../src/index.ts'

const text = readFileSync(join(import.meta.dirname, '../../../config.example.yml'), 'utf8')
/** The example with its commented settings switched on: `# name: value` at the start of a line. */
const uncommented = text
  .replace(/^# ([a-z0-9_]+:( |$))/gm, '$1')
  .replace(/^(search_tools|fetch_tools|providers): \{\}$/gm, '$1: {}')

test('the example names every setting there is, and no other', () => {
  const names = [...text.matchAll(/^(?:# )?([a-z0-9_]+):(?: |$)/gm)].map(([, name]) => name)
  expect(names.toSorted()).toEqual(Object.keys(configSchema.shape).toSorted())
})

test('the example is valid with everything switched on', () => {
  const read = configSchema.safeParse(parse(uncommented))
  expect(read.error).toBeUndefined()
})

test('what the example shows as a default is the default', () => {
  const shown = parse(uncommented) as Record<string, unknown>
  const defaults = configSchema.parse({}) as Record<string, unknown>
  for (const [name, value] of Object.entries(defaults)) expect([name, shown[name]]).toEqual([name, value])
})

test('the example as it stands changes nothing', () => {
  expect(configSchema.parse(parse(text))).toEqual(configSchema.parse({}))
})
