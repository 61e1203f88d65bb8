import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import type { Contender, Deployment } from './deployment.ts'
import { askGateway, type Lane, nameOf } from './lanes.ts'
import { send, streamLoad, type Target } from './load.ts'
import { round } from './statistics.ts'
import { asking } from './upstream.ts'
import { TEXT } from './wires.ts'

const lanes: Lane[] = [
  { client: 'chat', wire: 'openai-chat' },
  { client: 'messages', wire: 'openai-chat' },
]
const PIECES = 8
const CONCURRENCY = 32

const READERS = 200
/** More than the kernel's buffers on the way take: some MiB a connection. */
const LONG = { pieces: 8_000, size: 400 }
const READ_BYTES = 2_048
const READ_EVERY_MS = 100

/** That answers leave nothing behind, and that one which is not read waits at its provider and not here. */
export async function benchMemory(deployment: Deployment, isFull: boolean): Promise<void> {
  for (const lane of lanes) await manyStreams(deployment.gateway, lane, isFull ? 10_000 : 1_000)
  for (const lane of lanes) await slowReaders(deployment, lane, isFull ? 60_000 : 10_000)
}

async function manyStreams(gateway: Contender, lane: Lane, requests: number): Promise<void> {
  const ask = askGateway(lane, asking(PIECES, 0))
  await streamLoad(gateway, ask, Math.max(500, requests / 5), CONCURRENCY, PIECES)
  const before = await gateway.process.memory()
  await streamLoad(gateway, ask, requests, CONCURRENCY, PIECES)
  const after = await gateway.process.memory()
  console.log(
    `\n${nameOf(lane)}, ${requests} streamed requests: the heap grew by ${mebi(after.heapUsed - before.heapUsed)} from ${mebi(before.heapUsed)} (goal: flat, <= 5%), RSS by ${mebi(after.rss - before.rss)} from ${mebi(before.rss)}`,
  )
}

async function slowReaders({ gateway, upstream }: Deployment, lane: Lane, forMs: number): Promise<void> {
  const ask = askGateway(lane, asking(LONG.pieces, 0, LONG.size))
  const before = await gateway.process.memory()
  const written = await writtenBytes(upstream)
  const pool = new Pool(gateway.origin, { connections: READERS, pipelining: 1 })
  const bodies = await Promise.all(Array.from({ length: READERS }, async () => (await send(pool, gateway, ask)).body))
  const timer = setInterval(() => {
    for (const body of bodies) body.read(READ_BYTES)
  }, READ_EVERY_MS)
  await sleep(forMs / 2)
  const early = held(await gateway.process.memory(), before)
  await sleep(forMs / 2)
  const late = held(await gateway.process.memory(), before)
  const came = (await writtenBytes(upstream)) - written
  clearInterval(timer)
  for (const body of bodies) body.on('error', () => {}).destroy()
  await pool.destroy()
  console.log(
    `\n${nameOf(lane)}, ${READERS} slow readers: ${kibi(early / READERS)} held for each after ${forMs / 2_000} s, ${kibi(late / READERS)} after ${forMs / 1_000} s (goal: <= 512 KiB, not growing); ${mebi(came)} of ${mebi(READERS * LONG.pieces * LONG.size * TEXT.length)} had left the provider, for the kernel's buffers`,
  )
}

/** With what lies outside the heap: bytes on their way do. */
const held = (now: NodeJS.MemoryUsage, before: NodeJS.MemoryUsage): number =>
  now.heapUsed + now.external - before.heapUsed - before.external

async function writtenBytes({ origin }: Target): Promise<number> {
  return ((await (await fetch(origin)).json()) as { bytes: number }).bytes
}

const kibi = (bytes: number): string => `${round(bytes / 1_024, 0)} KiB`
const mebi = (bytes: number): string => `${round(bytes / 1_024 / 1_024, 1)} MiB`
