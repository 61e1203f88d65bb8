import { openFakeSandbox } from '@tollgate/testing'
import { expect, onTestFinished, test } from 'vitest'
import { checkConformance } from '../src/conformance/run.ts'
import { openBackend } from './harness.ts'

const failed = (results: { status: string }[]) => results.filter(({ status }) => status !== 'passed')

test('CP-29 the bundled backend conforms to protocol v1', { timeout: 120_000 }, async () => {
  const backend = await openBackend({ token: 's3cret' })
  onTestFinished(() => backend.close())
  const results = await checkConformance({ baseUrl: `${backend.url}/`, token: 's3cret' })
  expect(results.length).toBeGreaterThan(18)
  expect(failed(results)).toEqual([])
})

test('CP-29 the fake of the tests conforms to it too', { timeout: 60_000 }, async () => {
  const fake = await openFakeSandbox({ unknownMembers: 'ignore' })
  onTestFinished(() => fake.close())
  expect(failed(await checkConformance({ baseUrl: fake.url }))).toEqual([])
})

test('CP-01 a backend with the three mandatory operations alone conforms', { timeout: 60_000 }, async () => {
  const fake = await openFakeSandbox({ unknownMembers: 'ignore', files: false })
  onTestFinished(() => fake.close())
  const results = await checkConformance({ baseUrl: fake.url })
  expect(results.filter(({ status }) => status === 'failed')).toEqual([])
  expect(results.filter(({ status }) => status === 'not served')).toHaveLength(4)
})

test.each([
  ['a bare block', { type: 'code_execution_tool_result', tool_use_id: 't', content: {} }],
  ['content that is a list', { tool_use_id: 't', result_block: { type: 't', tool_use_id: 't', content: [] } }],
  [
    'an error variant',
    {
      tool_use_id: 't',
      result_block: { type: 't', tool_use_id: 't', content: { type: 'code_execution_tool_result_error' } },
    },
  ],
  ['an empty success for everything', { tool_use_id: 't', result_block: { type: 't', tool_use_id: 't', content: {} } }],
])('a backend that answers %s does not conform', { timeout: 60_000 }, async (_what, body) => {
  const fake = await openFakeSandbox({
    unknownMembers: 'ignore',
    respond: ({ operation }) => (operation === 'exec' ? { status: 200, body } : undefined),
  })
  onTestFinished(() => fake.close())
  const results = await checkConformance({ baseUrl: fake.url })
  expect(results.find(({ name }) => name.startsWith('code runs'))?.status).toBe('failed')
})

test('a backend that is not there fails every check', async () => {
  const fake = await openFakeSandbox()
  await fake.close()
  const results = await checkConformance({ baseUrl: fake.url })
  expect(new Set(results.map(({ status }) => status))).toEqual(new Set(['failed']))
})
