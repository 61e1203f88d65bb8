import { Pool } from 'undici'
import type { Ask } from './lanes.ts'

/** Somebody who answers, and what gets in there. */
export interface Target {
  origin: string
  headers: Record<string, string>
}

export interface PlainLoad {
  requestsPerSecond: number
  latenciesMs: number[]
}

export interface StreamLoad {
  /** Until the first piece of text. */
  firstTokenMs: number[]
  pieces: number
  /** Reads in which a client got pieces of text: as many as pieces when nothing was merged or held back. */
  reads: number
}

/** `total` plain answers, `concurrency` at a time. */
export async function plainLoad(target: Target, ask: Ask, total: number, concurrency: number): Promise<PlainLoad> {
  const pool = new Pool(target.origin, { connections: concurrency, pipelining: 1 })
  const latenciesMs: number[] = []
  const began = performance.now()
  await inParallel(total, concurrency, async () => {
    const sent = performance.now()
    const answer = await send(pool, target, ask)
    await answer.body.text()
    latenciesMs.push(performance.now() - sent)
  })
  const seconds = (performance.now() - began) / 1_000
  await pool.close()
  return { requestsPerSecond: total / seconds, latenciesMs }
}

/** `total` streams of `pieces` pieces, `concurrency` at a time. Every stream must be whole. */
export async function streamLoad(
  target: Target,
  ask: Ask,
  total: number,
  concurrency: number,
  pieces: number,
): Promise<StreamLoad> {
  const pool = new Pool(target.origin, { connections: concurrency, pipelining: 1 })
  const result: StreamLoad = { firstTokenMs: [], pieces: 0, reads: 0 }
  await inParallel(total, concurrency, async () => {
    const sent = performance.now()
    const { body } = await send(pool, target, ask)
    const parts: Buffer[] = []
    let got = 0
    body.on('data', (part: Buffer) => {
      parts.push(part)
      const found = countOf(part, ask.piece)
      if (found === 0) return
      if (got === 0) result.firstTokenMs.push(performance.now() - sent)
      got += found
      result.reads++
    })
    await new Promise((resolve, reject) => body.once('end', resolve).once('error', reject))
    if (got !== pieces || !Buffer.concat(parts).includes(ask.last))
      throw new Error(`${target.origin}${ask.path}: a stream had ${got} of ${pieces} pieces`)
    result.pieces += pieces
  })
  await pool.close()
  return result
}

async function inParallel(total: number, concurrency: number, run: () => Promise<void>): Promise<void> {
  let left = total
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (left-- > 0) await run()
    }),
  )
}

export async function send(pool: Pool, { origin, headers }: Target, { path, body }: Ask) {
  const answer = await pool.request({
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
  if (answer.statusCode === 200) return answer
  throw new Error(`${origin}${path} answered ${answer.statusCode}: ${(await answer.body.text()).slice(0, 300)}`)
}

function countOf(part: Buffer, word: string): number {
  let count = 0
  for (let at = part.indexOf(word); at >= 0; at = part.indexOf(word, at + word.length)) count++
  return count
}
