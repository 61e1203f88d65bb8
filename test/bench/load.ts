import { Pool } from 'undici'

export interface Target {
  origin: string
  path: string
  headers: Record<string, string>
  /** The model selector this gateway wants. */
  model: string
}

export interface PlainLoad {
  requestsPerSecond: number
  latenciesMs: number[]
}

export interface StreamLoad {
  firstTokenMs: number[]
  chunks: number
  /** Reads in which a client got data: as many as chunks when nothing was merged or held back. */
  reads: number
}

const body = (model: string, more: object): string =>
  JSON.stringify({ model, messages: [{ role: 'user', content: 'Say a hundred words about rivers.' }], ...more })

/** `total` plain completions, `concurrency` at a time. */
export async function plainLoad(target: Target, total: number, concurrency: number): Promise<PlainLoad> {
  const pool = new Pool(target.origin, { connections: concurrency, pipelining: 1 })
  const latenciesMs: number[] = []
  const payload = body(target.model, {})
  let left = total
  const began = performance.now()
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (left-- > 0) {
        const sent = performance.now()
        const answer = await ask(pool, target, payload)
        const text = await answer.body.text()
        if (answer.statusCode !== 200)
          throw new Error(`${target.origin} answered ${answer.statusCode}: ${text.slice(0, 300)}`)
        latenciesMs.push(performance.now() - sent)
      }
    }),
  )
  const seconds = (performance.now() - began) / 1_000
  await pool.close()
  return { requestsPerSecond: total / seconds, latenciesMs }
}

/** `total` streams of `chunks` chunks, `concurrency` at a time. */
export async function streamLoad(
  target: Target,
  total: number,
  concurrency: number,
  chunks: number,
): Promise<StreamLoad> {
  const pool = new Pool(target.origin, { connections: concurrency, pipelining: 1 })
  const payload = body(target.model, { stream: true, seed: chunks })
  const result: StreamLoad = { firstTokenMs: [], chunks: 0, reads: 0 }
  let left = total
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (left-- > 0) {
        const sent = performance.now()
        const answer = await ask(pool, target, payload)
        if (answer.statusCode !== 200) throw new Error(`${target.origin} answered ${answer.statusCode}`)
        let text = ''
        let reads = 0
        for await (const part of answer.body) {
          if (reads++ === 0) result.firstTokenMs.push(performance.now() - sent)
          text += (part as Buffer).toString()
        }
        const got = text.split('token text').length - 1
        if (got !== chunks || !text.includes('[DONE]'))
          throw new Error(`${target.origin}: a stream lost ${chunks - got} chunks`)
        result.chunks += chunks
        result.reads += reads
      }
    }),
  )
  await pool.close()
  return result
}

const ask = (pool: Pool, { path, headers }: Target, payload: string) =>
  pool.request({ method: 'POST', path, headers: { 'content-type': 'application/json', ...headers }, body: payload })
