import { type OtlpReceiver, startOtlp } from '@tollgate/testing'
import { afterAll, beforeAll, expect } from 'vitest'
import { makeKey, setPrice, type UsageRow, usageOf } from './client.ts'
import { type Deployment, type Kind, startDeployment } from './deployment.ts'
import { type Outside, openOutside } from './outside.ts'

/** A deployment with all three tools, priced, and the world around it. */
export interface System {
  deployment: Deployment
  outside: Outside
  otlp: OtlpReceiver
  /** An API key of the default user. */
  key: string
}

/** Dollars per million, as they stand in the ledger of every `System`. */
const prices: [key: string, input: number, output: number][] = [
  ['openai:gpt-5', 1.25, 10],
  ['anthropic:claude-sonnet-4-6', 3, 15],
  ['demo:*', 0, 0],
  ['otari:web_fetch', 10_000, 0],
  ['otari:code_execution', 1_234, 0],
]

/** Starts one for the tests of a suite, and expects every process of it to end in order. */
export function useSystem(kind: Kind): () => System {
  let system: Partial<System> = {}
  beforeAll(async () => {
    const [outside, otlp] = await Promise.all([openOutside(), startOtlp()])
    system = { outside, otlp }
    const deployment = await startDeployment(kind, {
      config: outside.config,
      env: {
        ...outside.env,
        OTARI_OTLP_ENDPOINT: new URL(otlp.url).origin,
        OTARI_BODY_LIMIT_BYTES: String(256 * 1024),
      },
    })
    system = { ...system, deployment, key: await makeKey(deployment) }
    for (const price of prices) await setPrice(deployment, ...price)
  }, 240_000)
  afterAll(async () => {
    const ends = await system.deployment?.stop()
    await Promise.all([system.outside?.close(), system.otlp?.stop()])
    expect(Object.fromEntries([...(ends ?? [])].filter(([, { code }]) => code !== 0))).toEqual({})
  }, 60_000)
  return () => system as System
}

/** The one row of a request, once it is settled, and the text it came in. */
export async function settledRow(deployment: Deployment, request: string): Promise<{ row: UsageRow; text: string }> {
  await expect.poll(async () => (await usageOf(deployment, request)).rows.length, { timeout: 10_000 }).toBe(1)
  const { rows, text } = await usageOf(deployment, request)
  return { row: rows[0] as UsageRow, text }
}
