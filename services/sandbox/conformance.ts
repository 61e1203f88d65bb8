import { parseArgs } from 'node:util'
import { checkConformance } from './src/conformance/run.ts'

// node services/sandbox/conformance.ts --base-url http://localhost:8080 [--token …]
// Checks any backend of code-execution protocol v1; exits 1 when it breaks the contract.

const { values } = parseArgs({ options: { 'base-url': { type: 'string' }, token: { type: 'string' } } })
const baseUrl = values['base-url']
if (!baseUrl) {
  console.error('usage: conformance.ts --base-url <url of the backend> [--token <bearer credential>]')
  process.exit(2)
}
const results = await checkConformance({ baseUrl, token: values.token }, ({ name, status, why }) =>
  console.log(`${status.padEnd(10)} ${name}${why ? ` (${why})` : ''}`),
)
const count = (status: string) => results.filter((result) => result.status === status).length
console.log(`\n${count('passed')} passed, ${count('failed')} failed, ${count('not served')} not served`)
process.exit(count('failed') > 0 ? 1 : 0)
