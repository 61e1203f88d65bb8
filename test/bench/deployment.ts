import { freePort, freshDatabase, startNats, startPostgres } from '@tollgate/testing'
import { models } from './lanes.ts'
import type { Target } from './load.ts'
import { type Measured, startScript } from './processes.ts'

export interface Contender extends Target {
  process: Measured
}

export interface Deployment {
  upstream: Target
  gateway: Contender
  /** The same upstream behind nothing but fastify and undici. */
  floor: Contender
  stop(): Promise<void>
}

/** The gateway as deployed: a process of its own, billing in another, over NATS and Postgres. */
export async function deploy(): Promise<Deployment> {
  const stops: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const each of stops.splice(0).toReversed()) await each()
  }
  try {
    const upstream = await startUpstream(stops)
    return {
      upstream,
      gateway: await startGateway(upstream.origin, stops),
      floor: await startFloor(upstream, stops),
      stop,
    }
  } catch (thrown) {
    await stop()
    throw thrown
  }
}

type Stops = (() => Promise<unknown>)[]

async function startUpstream(stops: Stops): Promise<Target> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const upstream = await startScript('test/bench/upstream.ts', [String(port)], origin)
  stops.push(upstream.stop)
  return { origin, headers: {} }
}

async function startGateway(upstream: string, stops: Stops): Promise<Contender> {
  const [nats, postgres] = await Promise.all([startNats(), startPostgres()])
  stops.push(nats.stop, postgres.stop)
  const database = await freshDatabase(postgres.url)
  stops.push(database.drop)
  const [port, gatewayHealth, billingHealth] = await Promise.all([freePort(), freePort(), freePort()])
  const masterKey = 'bench-master-key-0123456789'
  const env = {
    OTARI_NATS_URL: nats.url,
    OTARI_DATABASE_URL: database.url,
    OTARI_MASTER_KEY: masterKey,
    OTARI_HOST: '127.0.0.1',
    OTARI_LOG_LEVEL: 'warn',
    OTARI_CONFIG: new URL('./config.yml', import.meta.url).pathname,
    BENCH_UPSTREAM: upstream,
    NODE_ENV: 'production',
  }
  const billing = await startScript('services/run.ts', ['billing'], `http://127.0.0.1:${billingHealth}/readyz`, {
    ...env,
    OTARI_HEALTH_PORT: String(billingHealth),
  })
  stops.push(billing.stop)
  const process = await startScript('services/run.ts', ['gateway'], `http://127.0.0.1:${gatewayHealth}/readyz`, {
    ...env,
    OTARI_PORT: String(port),
    OTARI_HEALTH_PORT: String(gatewayHealth),
  })
  stops.push(process.stop)
  const origin = `http://127.0.0.1:${port}`
  const operator = (path: string, body: object) => post(`${origin}/api/v1/${path}`, masterKey, body)
  for (const model_key of models)
    await operator('pricing', { model_key, input_price_per_million: 1.25, output_price_per_million: 10 })
  const { key } = (await operator('keys', { key_name: 'bench' })) as { key: string }
  return { origin, headers: { authorization: `Bearer ${key}` }, process }
}

async function startFloor(upstream: Target, stops: Stops): Promise<Contender> {
  const port = await freePort()
  const process = await startScript(
    'test/bench/bare-proxy.ts',
    [String(port), upstream.origin],
    `http://127.0.0.1:${port}`,
    { NODE_ENV: 'production' },
  )
  stops.push(process.stop)
  return { origin: process.url, headers: {}, process }
}

async function post(url: string, key: string, body: object): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return response.json()
}
