import { Fault } from '@tollgate/contracts'

/** Who shall run a provider's keyword: the provider where it can, this gateway always, the provider always. */
export type Executor = 'auto' | 'otari' | 'provider'
const executors: readonly string[] = ['auto', 'otari', 'provider'] satisfies Executor[]

/** What the request's headers choose, by the name of the tool (X-08, S-03, F-02). */
export type ExecutorChoice = Partial<Record<string, Executor>>

const headers = { web_search: 'Otari-Web-Search', web_fetch: 'Otari-Web-Fetch', code_execution: 'Otari-Code-Execution' }

/** A blank header counts as absent; case and blanks around do not matter. */
export function readExecutors(given: Record<string, string | string[] | undefined>): ExecutorChoice {
  const choice: ExecutorChoice = {}
  for (const [tool, header] of Object.entries(headers)) {
    const value = String(given[header.toLowerCase()] ?? '')
      .trim()
      .toLowerCase()
    if (value === '') continue
    if (!executors.includes(value)) {
      throw new Fault('invalid_request', `${header} must be one of ${executors.join(', ')}`)
    }
    choice[tool] = value as Executor
  }
  return choice
}
