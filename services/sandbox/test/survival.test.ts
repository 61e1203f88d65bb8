import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { alive, descendantsOf } from './host.ts'

const SESSIONS = 200
const CLIENTS = 8
/** A call is granted 2 s; the server gives up on a session that says nothing 10 s later. */
const DEADLINE_MS = 20_000
/** Answers between two kills, at most: so that each hits something else, on a machine of any speed. */
const MOST_BETWEEN = 40
const AT_MOST_MS = 20_000

const temporary = mkdtempSync(join(tmpdir(), 'survival-'))
chmodSync(temporary, 0o755)

async function startServer(): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, ['--import', './scripts/ts.mjs', 'services/sandbox/main.ts'], {
    cwd: join(import.meta.dirname, '../../..'),
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: temporary },
  })
  child.stdin?.on('error', () => {}) // killed before it read
  child.stdin?.write(`${JSON.stringify({ maxSessions: 32 })}\n`)
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
  const url = await new Promise<string>((resolve, reject) => {
    lines.on('line', (line) => {
      const said = JSON.parse(line) as { url?: string }
      if (said.url) resolve(said.url)
    })
    lines.once('close', () => reject(new Error('the server ended at its start')))
  })
  return { child, url }
}

test('H2 BR-126 BR-128 server and zygote are killed at random: clear answers, none late, nothing left', {
  timeout: 120_000,
}, async () => {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
  let server = await startServer()
  const family = new Set<number>()
  onTestFinished(() => {
    server.child.kill('SIGKILL')
    rmSync(temporary, { recursive: true, force: true })
  })
  let opened = 0
  let answered = 0
  const until = Date.now() + AT_MOST_MS
  const kills = { server: 0, zygote: 0 }
  const answers = new Map<string, number>()
  const count = (what: string) => answers.set(what, (answers.get(what) ?? 0) + 1)

  /** What came of a request: its answer, or that there was nobody to answer it. A late one fails the test. */
  const send = async (method: string, path: string, json?: object) => {
    const body = json ? JSON.stringify(json) : null
    const headers = json ? { 'content-type': 'application/json' } : {}
    const signal = AbortSignal.timeout(DEADLINE_MS)
    try {
      const response = await fetch(server.url + path, { method, body, headers, signal })
      const text = await response.text()
      count(`${method} ${response.status}`)
      if (response.ok) answered += 1
      return { status: response.status, text }
    } catch (thrown) {
      if (signal.aborted) throw new Error(`${method} ${path.slice(0, 12)} hung`, { cause: thrown })
      count(`${method} broken off`)
      return undefined
    }
  }
  const client = async () => {
    while (opened < SESSIONS && Date.now() < until) {
      const lease = await send('POST', '/sessions')
      if (lease?.status !== 201) {
        expect([503, undefined]).toContain(lease?.status)
        await sleep(50)
        continue
      }
      opened += 1
      const { session_id } = JSON.parse(lease.text) as { session_id: string }
      const calls = [
        { tool: 'code_execution', input: { code: 'x = 41\nprint(x + 1)' } },
        { tool: 'bash_code_execution', input: { command: 'setsid sleep 7654.3 & echo 42' } },
      ]
      for (const call of calls) {
        const done = await send('POST', `/sessions/${session_id}/exec`, { ...call, timeout_seconds: 2 })
        expect([200, 404, undefined]).toContain(done?.status)
        // an answer is either the whole truth or says what was lost
        if (done?.status === 200) expect(done.text).toMatch(/"stdout":"42\\n"|"return_code":-?[1-9]/)
      }
      const ended = await send('DELETE', `/sessions/${session_id}`)
      expect([204, undefined]).toContain(ended?.status)
    }
  }
  let over = false
  const kill = async () => {
    for (let round = 0; !over; round += 1) {
      const next = answered + 1 + Math.floor(Math.random() * MOST_BETWEEN)
      while (!over && answered < next) await sleep(5)
      if (over) return
      const members = descendantsOf(server.child.pid as number)
      for (const pid of members) family.add(pid)
      if (round % 4 === 3) {
        kills.server += 1
        server.child.kill('SIGKILL')
        await once(server.child, 'exit')
        server = await startServer()
      } else {
        const [zygote] = members
        if (zygote === undefined) continue
        kills.zygote += 1
        process.kill(zygote, 'SIGKILL')
      }
    }
  }
  const killing = kill()
  await Promise.all(Array.from({ length: CLIENTS }, client)).finally(() => {
    over = true
  })
  await killing

  expect(kills.zygote).toBeGreaterThan(1)
  expect(opened).toBeGreaterThan(10)
  expect([...answers.keys()].filter((what) => /50[0124]/.test(what))).toEqual([])
  expect(answers.get('POST 200') ?? 0).toBeGreaterThan(0)
  // the next request works
  await expect.poll(async () => (await send('POST', '/sessions'))?.status, { timeout: 15_000 }).toBe(201)

  for (const pid of descendantsOf(server.child.pid as number)) family.add(pid)
  server.child.kill('SIGKILL')
  await once(server.child, 'exit')
  await expect.poll(() => alive([...family]), { timeout: 10_000 }).toEqual([])
  // where server and zygote died together nobody was left to tidy up: the next server does
  const { child: next } = await startServer()
  next.kill('SIGTERM')
  await once(next, 'exit')
  await expect
    .poll(() => readdirSync(temporary).filter((name) => name.startsWith('tollgate-')), { timeout: 10_000 })
    .toEqual([])
  expect(readFileSync('/proc/self/mounts', 'utf8')).toBe(mounts)
})
