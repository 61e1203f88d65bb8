import { freePort, freshDatabase, startNats, startPostgres } from '@tollgate/testing'
import { type PlainLoad, plainLoad, type StreamLoad, streamLoad, type Target } from './load.ts'
import { startPortkey } from './portkey.ts'
import { type Measured, startScript } from './processes.ts'
import { median, quantile, ratioLine, round } from './statistics.ts'

/** Every process answers this many requests before anything is measured. */
const WARM_REQUESTS = 10_000
const PAIRS = 7
const PLAIN = { total: 2_000, concurrency: 16 }
const STREAMS = { total: 64, concurrency: 32, chunks: 100 }
const FIRST_TOKENS = { total: 60, concurrency: 1, chunks: 2 }

interface Contender {
  name: string
  target: Target
  process: Measured
}

interface Round {
  plain: PlainLoad
  cpuPerRequestMicros: number
  streams: StreamLoad
  cpuPerChunkMicros: number
  firstTokens: StreamLoad
}

/**
 * A plain completion and a streamed one through the gateway process (auth and billing on, over real NATS and Postgres),
 * against a bare fastify and undici proxy and against a peer, in one run, interleaved.
 */
export async function benchChat(): Promise<void> {
  const stops: (() => Promise<unknown>)[] = []
  try {
    const upstreamPort = await freePort()
    const upstream = await startScript(
      'test/bench/upstream.ts',
      [String(upstreamPort)],
      `http://127.0.0.1:${upstreamPort}`,
    )
    stops.push(upstream.stop)
    const direct: Target = { origin: upstream.url, path: '/v1/chat/completions', headers: {}, model: 'bench' }
    const contenders = [
      await tollgate(upstream.url, stops),
      await bareProxy(upstream.url, stops),
      await peer(upstream.url, stops),
    ]

    for (const { name, target } of contenders) {
      await plainLoad(target, WARM_REQUESTS, PLAIN.concurrency)
      await streamLoad(target, STREAMS.concurrency, STREAMS.concurrency, 20)
      console.log(`${name} is warm`)
    }
    const rounds = new Map(contenders.map(({ name }) => [name, [] as Round[]]))
    const directPlain: PlainLoad[] = []
    const directFirst: StreamLoad[] = []
    for (let pair = 0; pair < PAIRS; pair++) {
      directPlain.push(await plainLoad(direct, 500, PLAIN.concurrency))
      directFirst.push(await streamLoad(direct, FIRST_TOKENS.total, FIRST_TOKENS.concurrency, FIRST_TOKENS.chunks))
      // who goes first changes from pair to pair, so that drift of the machine favours nobody
      for (const contender of pair % 2 === 0 ? contenders : contenders.toReversed())
        rounds.get(contender.name)?.push(await measure(contender))
    }
    report(rounds, directPlain, directFirst)
    for (const { name, process } of contenders)
      console.log(`${name.padEnd(12)} RSS ${round(process.rssBytes() / 2 ** 20, 0)} MiB`)
  } finally {
    for (const stop of stops.toReversed()) await stop()
  }
}

async function measure({ target, process }: Contender): Promise<Round> {
  const beforePlain = process.cpuMicros()
  const plain = await plainLoad(target, PLAIN.total, PLAIN.concurrency)
  const cpuPerRequestMicros = (process.cpuMicros() - beforePlain) / PLAIN.total
  const beforeStreams = process.cpuMicros()
  const streams = await streamLoad(target, STREAMS.total, STREAMS.concurrency, STREAMS.chunks)
  // what a request costs by itself is taken out: what is left was spent on chunks
  const cpuPerChunkMicros =
    (process.cpuMicros() - beforeStreams - STREAMS.total * cpuPerRequestMicros) / (STREAMS.total * STREAMS.chunks)
  const firstTokens = await streamLoad(target, FIRST_TOKENS.total, FIRST_TOKENS.concurrency, FIRST_TOKENS.chunks)
  return { plain, cpuPerRequestMicros, streams, cpuPerChunkMicros, firstTokens }
}

function report(rounds: Map<string, Round[]>, directPlain: PlainLoad[], directFirst: StreamLoad[]): void {
  const plainMs = median(directPlain.flatMap(({ latenciesMs }) => latenciesMs))
  const firstMs = median(directFirst.flatMap(({ firstTokenMs }) => firstTokenMs))
  console.log('\n              CPU/request  requests/s  added p50  CPU/chunk  first token added p50 / p95  reads/chunk')
  for (const [name, all] of rounds) {
    const latencies = all.flatMap(({ plain }) => plain.latenciesMs)
    const first = all.flatMap(({ firstTokens }) => firstTokens.firstTokenMs)
    const reads =
      all.reduce((sum, { streams }) => sum + streams.reads, 0) /
      all.reduce((sum, { streams }) => sum + streams.chunks, 0)
    console.log(
      `${name.padEnd(12)} ${round(median(all.map((r) => r.cpuPerRequestMicros)), 0).padStart(9)} us ${round(median(all.map((r) => r.plain.requestsPerSecond)), 0).padStart(10)} ${round(median(latencies) - plainMs).padStart(8)} ms ${round(median(all.map((r) => r.cpuPerChunkMicros)), 0).padStart(6)} us ${round(median(first) - firstMs).padStart(12)} ms / ${round(quantile(first, 0.95) - firstMs)} ms ${round(reads, 3).padStart(14)}`,
    )
  }
  const of = (name: string, pick: (round: Round) => number) => (rounds.get(name) ?? []).map(pick)
  const cpu = (r: Round) => r.cpuPerRequestMicros
  const chunk = (r: Round) => r.cpuPerChunkMicros
  const rate = (r: Round) => r.plain.requestsPerSecond
  const first = (r: Round) => median(r.firstTokens.firstTokenMs)
  console.log('')
  console.log(
    ratioLine('CPU per request, tollgate to bare proxy (goal <= 2.5)', of('tollgate', cpu), of('bare proxy', cpu)),
  )
  console.log(
    ratioLine('CPU per chunk, tollgate to bare proxy (goal <= 1.8)', of('tollgate', chunk), of('bare proxy', chunk)),
  )
  console.log(ratioLine('requests/s, tollgate to peer (goal >= 4)', of('tollgate', rate), of('peer', rate)))
  console.log(ratioLine('CPU per request, peer to bare proxy', of('peer', cpu), of('bare proxy', cpu)))
  const added = of('tollgate', first).map((value, at) => value - (of('bare proxy', first)[at] as number))
  console.log(`first token, tollgate after bare proxy (goal <= 3 ms)        ${round(median(added))} ms`)
}

/** The gateway as deployed: a process of its own, billing in another, over NATS and Postgres. */
async function tollgate(upstream: string, stops: (() => Promise<unknown>)[]): Promise<Contender> {
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
    BENCH_UPSTREAM: `${upstream}/v1`,
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
  await operator('pricing', { model_key: 'bench:bench', input_price_per_million: 1.25, output_price_per_million: 10 })
  const { key } = (await operator('keys', { key_name: 'bench' })) as { key: string }
  const target = {
    origin,
    path: '/v1/chat/completions',
    headers: { authorization: `Bearer ${key}` },
    model: 'bench:bench',
  }
  return { name: 'tollgate', target, process }
}

async function bareProxy(upstream: string, stops: (() => Promise<unknown>)[]): Promise<Contender> {
  const port = await freePort()
  const process = await startScript('test/bench/bare-proxy.ts', [String(port), upstream], `http://127.0.0.1:${port}`, {
    NODE_ENV: 'production',
  })
  stops.push(process.stop)
  const target = { origin: process.url, path: '/v1/chat/completions', headers: {}, model: 'bench' }
  return { name: 'bare proxy', target, process }
}

async function peer(upstream: string, stops: (() => Promise<unknown>)[]): Promise<Contender> {
  const port = await freePort()
  const process = await startPortkey(port)
  stops.push(process.stop)
  const headers = {
    authorization: 'Bearer upstream',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `${upstream}/v1`,
  }
  return {
    name: 'peer',
    target: { origin: process.url, path: '/v1/chat/completions', headers, model: 'bench' },
    process,
  }
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
