import type { Contender, Deployment } from './deployment.ts'
import { type Ask, askGateway, askProvider, type Lane, nameOf, sameDialect, translated } from './lanes.ts'
import { type StreamLoad, streamLoad } from './load.ts'
import { median, ratioLine, round } from './statistics.ts'
import { asking } from './upstream.ts'

const STREAMS = 64
const GAP_MS = 20
/** What a request costs by itself is in both: the difference was spent on pieces. */
const SHORT = 4
const LONG = 104
const FIRST_TOKENS = 40

interface Round {
  cpuPerPieceMicros: number
  streams: StreamLoad
  firstTokenMs: number
}

interface Side {
  contender: Contender
  ask(pieces: number): Ask
  rounds: Round[]
}

/** Streams through every lane, each beside the floor's of the same upstream. */
export async function benchStreams(deployment: Deployment, isFull: boolean): Promise<void> {
  console.log(`\n${STREAMS} streams, a piece each ${GAP_MS} ms; CPU of a piece as the gateway's and the bare proxy's`)
  for (const lane of sameDialect) await benchLane(deployment, lane, 1.3, isFull ? 9 : 5)
  for (const lane of translated) await benchLane(deployment, lane, 1.8, isFull ? 9 : 5)
}

async function benchLane({ gateway, floor }: Deployment, lane: Lane, goal: number, pairs: number): Promise<void> {
  const ours: Side = { contender: gateway, ask: (pieces) => askGateway(lane, asking(pieces, GAP_MS)), rounds: [] }
  const theirs: Side = { contender: floor, ask: (pieces) => askProvider(lane, asking(pieces, GAP_MS)), rounds: [] }
  for (const side of [ours, theirs, ours, theirs]) await warm(side)
  for (let pair = 0; pair < pairs; pair++) {
    const first = await firstTokens(ours, theirs)
    // at the same time, since what a piece costs depends on what else the machine does meanwhile
    const [own, floors] = await Promise.all([measure(ours), measure(theirs)])
    ours.rounds.push({ ...own, firstTokenMs: first.ours })
    theirs.rounds.push({ ...floors, firstTokenMs: first.theirs })
  }
  report(nameOf(lane), goal, ours.rounds, theirs.rounds)
}

/** Pieces without a gap: as many as it takes for everything on the way to be compiled. */
async function warm({ contender, ask }: Side): Promise<void> {
  await streamLoad(contender, ask(LONG), STREAMS, STREAMS, LONG)
  for (let i = 0; i < 3; i++) await streamLoad(contender, ask(SHORT), STREAMS, STREAMS, SHORT)
}

/** One of ours, one of theirs, and so on, nothing else under way. */
async function firstTokens(ours: Side, theirs: Side): Promise<{ ours: number; theirs: number }> {
  const ms: Record<'ours' | 'theirs', number[]> = { ours: [], theirs: [] }
  for (let i = 0; i < FIRST_TOKENS; i++) {
    ms.ours.push(...(await streamLoad(ours.contender, ours.ask(1), 1, 1, 1)).firstTokenMs)
    ms.theirs.push(...(await streamLoad(theirs.contender, theirs.ask(1), 1, 1, 1)).firstTokenMs)
  }
  return { ours: median(ms.ours), theirs: median(ms.theirs) }
}

async function measure({ contender, ask }: Side): Promise<Omit<Round, 'firstTokenMs'>> {
  const { process } = contender
  const atStart = process.cpuMicros()
  await streamLoad(contender, ask(SHORT), STREAMS, STREAMS, SHORT)
  const atMiddle = process.cpuMicros()
  const streams = await streamLoad(contender, ask(LONG), STREAMS, STREAMS, LONG)
  const spent = process.cpuMicros() - atMiddle - (atMiddle - atStart)
  return { cpuPerPieceMicros: spent / (STREAMS * (LONG - SHORT)), streams }
}

function report(name: string, goal: number, ours: Round[], theirs: Round[]): void {
  const cpu = ({ cpuPerPieceMicros }: Round) => cpuPerPieceMicros
  const micros = (rounds: Round[]) => round(median(rounds.map(cpu)), 1)
  console.log(`\n${name}: ${micros(ours)} us and ${micros(theirs)} us`)
  console.log(`  ${ratioLine(`CPU per piece (goal <= ${goal})`, ours.map(cpu), theirs.map(cpu))}`)
  const added = ours.map(({ firstTokenMs }, at) => firstTokenMs - (theirs[at] as Round).firstTokenMs)
  console.log(
    `  ${'first token later than behind the bare proxy (goal <= 1 ms)'.padEnd(58)} ${round(median(added))} ms  (${round(Math.min(...added))}-${round(Math.max(...added))})`,
  )
  console.log(
    `  ${'reads of a piece (goal >= 0.99)'.padEnd(58)} ${round(readsOf(ours), 3)}  (bare proxy ${round(readsOf(theirs), 3)})`,
  )
}

const readsOf = (rounds: Round[]): number =>
  rounds.reduce((sum, { streams }) => sum + streams.reads, 0) /
  rounds.reduce((sum, { streams }) => sum + streams.pieces, 0)
