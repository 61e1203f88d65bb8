import { callChecks } from './call-checks.ts'
import { Breach, openClient, Unserved } from './client.ts'
import { fileChecks } from './file-checks.ts'
import { sessionChecks } from './session-checks.ts'

export interface CheckResult {
  name: string
  status: 'passed' | 'failed' | 'not served'
  why?: string
}

/**
 * Drives a backend of code-execution protocol v1 through the contract, one session a check. A backend that stops
 * answering fails the checks it does not answer.
 */
export async function checkConformance(
  { baseUrl, token }: { baseUrl: string; token?: string | undefined },
  onResult: (result: CheckResult) => void = () => {},
): Promise<CheckResult[]> {
  const client = openClient(baseUrl, token)
  const results: CheckResult[] = []
  for (const { name, run } of [...sessionChecks, ...callChecks, ...fileChecks]) {
    const result = await run(client).then(
      (): CheckResult => ({ name, status: 'passed' }),
      (thrown: unknown): CheckResult => failure(name, thrown),
    )
    results.push(result)
    onResult(result)
  }
  return results
}

function failure(name: string, thrown: unknown): CheckResult {
  if (thrown instanceof Unserved) return { name, status: 'not served', why: thrown.message }
  if (thrown instanceof Breach) return { name, status: 'failed', why: thrown.message }
  const why = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : 'unknown reason'
  return { name, status: 'failed', why: `no answer (${why})` }
}
