import { openDb } from '@tollgate/db'
import type { FakeSandbox } from '@tollgate/testing'
import { expect } from 'vitest'
import { ask, type UsageRow } from './client.ts'
import type { Deployment } from './deployment.ts'
import type { Outside } from './outside.ts'
import { allTools, threeTools } from './scripted-jobs.ts'

/** How a request ended, as its client saw it. */
export type Ending =
  /** The whole answer. */
  | { kind: 'whole' }
  /** A status, or an error in the stream, in the dialect's form. */
  | { kind: 'told'; status: number; text: string }
  /** The connection was refused or broke off. */
  | { kind: 'cut' }
  /** No end within its time. */
  | { kind: 'hung' }

export interface Sent {
  tag: string
  ending: Ending
  tookMs: number
}

/** Each job is for a model of its own name, so that its rows can be told from all others. */
export const modelOf = (tag: string): string => `m-${tag}`

/** Sends a job of all three tools, and says how it ended; longer than `patienceMs` is a hang. */
export async function sendJob(
  { url }: Pick<Deployment, 'url'>,
  key: string,
  { tag, stream, patienceMs }: { tag: string; stream: boolean; patienceMs: number },
): Promise<Sent> {
  const began = performance.now()
  const late = AbortSignal.timeout(patienceMs)
  const ending = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: `openai:${modelOf(tag)}`,
      messages: [{ role: 'user', content: threeTools(tag) }],
      tools: allTools,
      stream,
    }),
    signal: late,
  })
    .then(async (response) => endingOf(response.status, await response.text(), stream))
    .catch((): Ending => ({ kind: late.aborted ? 'hung' : 'cut' }))
  return { tag, ending, tookMs: performance.now() - began }
}

function endingOf(status: number, text: string, stream: boolean): Ending {
  const failed = status !== 200 || text.includes('"error":{"message":"An error occurred during streaming"')
  if (failed) return { kind: 'told', status, text }
  const whole = stream ? text.endsWith('data: [DONE]\n\n') : text.includes('"finish_reason":"stop"')
  return { kind: whole ? 'whole' : 'cut' }
}

/** Every row there is, as the operator lists them. */
export async function allRows(deployment: Deployment): Promise<UsageRow[]> {
  const rows: UsageRow[] = []
  for (let skip = 0; ; skip += 1_000) {
    const { json } = await ask(deployment, 'GET', `/api/v1/usage?limit=1000&skip=${skip}`, {
      key: deployment.masterKey,
    })
    rows.push(...json.data)
    if (json.data.length < 1_000) return rows
  }
}

export interface Witnesses {
  outside: Outside
  sandbox: FakeSandbox
}

/**
 * Holds the ledger against what the world outside saw of each job. A call whose result reached the model stands there
 * once, as what it came to. One whose result was on its way when its gateway died may be missing; nothing else may, and
 * nothing stands there twice or for nothing.
 */
export function expectExactLedger(rows: UsageRow[], sent: Sent[], { outside, sandbox }: Witnesses): void {
  const mistakes = sent.flatMap((job) => {
    const calls = callsOf(job.tag, { outside, sandbox })
    const found = rows.filter(({ model }) => model === modelOf(job.tag))
    return mistakesIn(job, found, outside.jobs.seen(job.tag), calls).map((what) => `${job.tag}: ${what}`)
  })
  expect(mistakes).toEqual([])
}

const tools = ['web_search', 'web_fetch', 'code_execution'] as const
type Calls = Record<(typeof tools)[number], number>

function callsOf(tag: string, { outside, sandbox }: Witnesses): Calls {
  return {
    web_search: outside.search.requests.filter(({ query }) => query.q === `news of ${tag}`).length,
    web_fetch: outside.web.requests.filter(({ target }) => target.includes(`/page/${tag}?`)).length,
    code_execution: sandbox.requests.filter(({ operation, body }) => operation === 'exec' && body.includes(tag)).length,
  }
}

function mistakesIn(
  { ending }: Sent,
  rows: UsageRow[],
  seen: { rounds: number; results: Map<string, string> },
  calls: Calls,
): string[] {
  const [row, ...more] = rows
  if (more.length > 0) return [`${rows.length} rows`]
  // its hold stood in the database before any model was asked
  if (row === undefined) return seen.rounds > 0 ? ['no row, though a model was asked'] : []
  const mistakes: string[] = []
  const demand = (holds: boolean, what: string) => {
    if (!holds) mistakes.push(what)
  }
  for (const tool of tools) {
    const { billed, errors } = row.billing_meters.tools?.[tool] ?? { billed: 0, errors: 0 }
    const result = seen.results.get(tool)
    demand(billed + errors <= 1, `${tool} stands there ${billed + errors} times`)
    demand(billed === 0 || calls[tool] > 0, `${tool} is billed and never ran`)
    if (result === undefined) continue
    demand(billed + errors === 1, `${tool} is missing, though the model read its result`)
    demand(
      billed === (result.startsWith('[tool error]') ? 0 : 1),
      `${tool} is not billed as what it came to: ${result}`,
    )
  }
  demand(calls.code_execution <= 1, `its program ran ${calls.code_execution} times`)
  const micros = (dollars: number | null) => Math.round((dollars ?? 0) * 1e6)
  const lines = row.pricing_breakdown.reduce((sum, { cost }) => sum + micros(cost), 0)
  demand(lines === micros(row.cost), `costs ${row.cost}, and its lines ${lines / 1e6}`)
  if (ending.kind === 'whole') {
    demand(row.status === 'success' && row.settled_by === 'gateway', `is ${row.status} by ${row.settled_by}`)
    demand(row.total_tokens === 460, `has ${row.total_tokens} tokens`)
  }
  return mistakes
}

/** Ages every hold of a request that nobody serves any more, and waits until the sweep has ended them. */
export async function expectHoldsEnd({ databaseUrl = '' }: Deployment): Promise<void> {
  const db = await openDb({ url: databaseUrl, log: { warn: () => undefined }, poolSize: 1 })
  const run = db.prepare<{ count: bigint }>('holds_left', 'select count(*) as count from billing.holds')
  const age = db.prepare('holds_age', "update billing.holds set ends_at = ends_at - interval '1 day'")
  try {
    await age([])
    await expect.poll(async () => (await run([]))[0]?.count, { timeout: 20_000 }).toBe(0n)
  } finally {
    await db.close()
  }
}
