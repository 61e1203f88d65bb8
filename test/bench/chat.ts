import { freePort } from '@tollgate/testing'
import { type Contender, type Deployment, deploy } from './deployment.ts'
import { askGateway, askProvider, type Lane } from './lanes.ts'
import { type PlainLoad, plainLoad } from './load.ts'
import { benchMemory } from './memory.ts'
import { startPortkey } from './portkey.ts'
import { median, ratioLine, round } from './statistics.ts'
import { benchStreams } from './streams.ts'

/** Every process answers this many requests before anything is measured. */
const WARM_REQUESTS = 10_000
const PAIRS = 7
const PLAIN = { total: 2_000, concurrency: 16 }

const parts: Record<string, (deployment: Deployment, isFull: boolean) => Promise<void>> = {
  requests: benchRequests,
  streams: benchStreams,
  memory: benchMemory,
}

/**
 * The gateway process (auth and billing on, over real NATS and Postgres) beside a bare fastify and undici proxy, in one run
 * and interleaved. `npm run bench -- chat streams` measures a part, `full` at the end of it longer.
 */
export async function benchChat(wanted: string[]): Promise<void> {
  const isFull = wanted.includes('full')
  const named = wanted.filter((word) => word !== 'full')
  const unknown = named.find((name) => !(name in parts))
  if (unknown !== undefined)
    throw new Error(`no part '${unknown}' of chat; there are: ${Object.keys(parts).join(', ')}`)
  const deployment = await deploy()
  try {
    for (const [name, part] of Object.entries(parts))
      if (named.length === 0 || named.includes(name)) await part(deployment, isFull)
  } finally {
    await deployment.stop()
  }
}

const lane: Lane = { client: 'chat', wire: 'openai-chat' }
const plain = { gateway: askGateway(lane, 'rivers', false), provider: askProvider(lane, 'rivers', false) }

interface Round {
  load: PlainLoad
  cpuMicros: number
}

/** Plain completions, against the floor and against a peer. */
async function benchRequests({ upstream, gateway, floor }: Deployment): Promise<void> {
  const peer = await startPeer(upstream.origin)
  try {
    const contenders = [
      { name: 'tollgate', ...gateway, ask: plain.gateway },
      { name: 'bare proxy', ...floor, ask: plain.provider },
      { name: 'peer', ...peer, ask: plain.provider },
    ]
    for (const contender of contenders) await plainLoad(contender, contender.ask, WARM_REQUESTS, PLAIN.concurrency)
    const rounds = new Map(contenders.map(({ name }) => [name, [] as Round[]]))
    const direct: number[] = []
    for (let pair = 0; pair < PAIRS; pair++) {
      direct.push(...(await plainLoad(upstream, plain.provider, 500, PLAIN.concurrency)).latenciesMs)
      // who goes first changes from pair to pair, so that drift of the machine favours nobody
      for (const contender of pair % 2 === 0 ? contenders : contenders.toReversed()) {
        const before = contender.process.cpuMicros()
        const load = await plainLoad(contender, contender.ask, PLAIN.total, PLAIN.concurrency)
        const cpuMicros = (contender.process.cpuMicros() - before) / PLAIN.total
        rounds.get(contender.name)?.push({ load, cpuMicros })
      }
    }
    report(rounds, median(direct))
  } finally {
    await peer.process.stop()
  }
}

function report(rounds: Map<string, Round[]>, directMs: number): void {
  console.log('\n              CPU/request  requests/s  added p50')
  for (const [name, all] of rounds) {
    const cpu = round(median(all.map(({ cpuMicros }) => cpuMicros)), 0)
    const rate = round(median(all.map(({ load }) => load.requestsPerSecond)), 0)
    const added = round(median(all.flatMap(({ load }) => load.latenciesMs)) - directMs)
    console.log(`${name.padEnd(12)} ${cpu.padStart(9)} us ${rate.padStart(10)} ${added.padStart(8)} ms`)
  }
  const of = (name: string, pick: (round: Round) => number) => (rounds.get(name) ?? []).map(pick)
  const cpu = ({ cpuMicros }: Round) => cpuMicros
  const rate = ({ load }: Round) => load.requestsPerSecond
  console.log('')
  console.log(
    ratioLine('CPU per request, tollgate to bare proxy (goal <= 2.5)', of('tollgate', cpu), of('bare proxy', cpu)),
  )
  console.log(ratioLine('requests/s, tollgate to peer (goal >= 4)', of('tollgate', rate), of('peer', rate)))
  console.log(ratioLine('CPU per request, peer to bare proxy', of('peer', cpu), of('bare proxy', cpu)))
}

async function startPeer(upstream: string): Promise<Contender> {
  const process = await startPortkey(await freePort())
  const headers = {
    authorization: 'Bearer upstream',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `${upstream}/v1`,
  }
  return { origin: process.url, headers, process }
}
