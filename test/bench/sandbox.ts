import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { freePort } from '@tollgate/testing'
import { probePython } from '../../services/sandbox/src/index.ts'
import { defaultSandboxSettings } from '../../services/sandbox/src/settings.ts'
import { type BenchClient, openBenchClient } from './sandbox-client.ts'
import { median, ratioLine, round } from './statistics.ts'

const root = join(import.meta.dirname, '../..')
const CLIENTS = 16
const IDLE_SESSIONS = 20

interface Backend {
  client: BenchClient
  pid: number
  stop(): Promise<void>
}

/**
 * The bundled backend, with everything that keeps its sessions apart, beside one that keeps nothing apart: both measured in
 * one run, call by call in turn. `npm run bench -- sandbox [python]`; pandas is measured where that Python has it.
 */
export async function benchSandbox([wanted]: string[]): Promise<void> {
  const python = await probePython({ path: process.env.PATH ?? '', ...(wanted ? { python: wanted } : {}) })
  if (!python.ok) {
    console.log(`skipped: ${python.reason}`)
    return
  }
  const hasPandas = await promisify(execFile)(python.path, ['-I', '-c', 'import numpy, pandas']).then(
    () => true,
    () => false,
  )
  const [ours, plain] = await Promise.all([startOurs(python.path), startPlain(python.path)])
  const both = [ours.client, plain.client] as const
  try {
    await both[0].destroy(await both[0].create())
    await latencies(both)
    await files(both)
    await firstResults(both, hasPandas)
    await cycles(both)
    await memory(ours, hasPandas)
  } finally {
    await Promise.all([ours.stop(), plain.stop()])
  }
}

type Both = readonly [BenchClient, BenchClient]

/** Times one after the other, `rounds` times; says both medians and how many times slower the plain backend is. */
async function compare(
  name: string,
  rounds: number,
  both: Both,
  work: (client: BenchClient, at: 0 | 1) => Promise<number>,
) {
  const times: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++)
    for (const at of [0, 1] as const) times[at].push(await work(both[at], at))
  const [ours, theirs] = times
  console.log(`${ratioLine(name, theirs, ours)}  p50 ${round(median(ours))} ms, plain ${round(median(theirs))} ms`)
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work()
  return performance.now() - began
}

async function latencies(both: Both): Promise<void> {
  const sessions: string[] = []
  for (const client of both) sessions.push(await client.create())
  const exec = (tool: string, input: object) => (client: BenchClient, at: 0 | 1) =>
    timed(() => client.exec(sessions[at] as string, tool, input))
  const python = (code: string) => exec('code_execution', { code })
  const edit = (input: object) => exec('text_editor_code_execution', { path: 'notes.txt', ...input })
  await compare('(warming up)', 30, both, python('print(1)'))
  await compare('print(1) in a session that runs', 200, both, python('print(1)'))
  await compare('1 MB of output, 80 columns', 15, both, python('for _ in range(13_000): print("x" * 79)'))
  await compare('1 MB of output, one line', 15, both, python('print("x" * 1_000_000)'))
  await compare('bash: echo', 40, both, exec('bash_code_execution', { command: 'echo hello' }))
  let made = 0
  await compare('editor: create', 40, both, (client, at) => {
    made++
    return timed(() =>
      exec('text_editor_code_execution', { command: 'create', path: `made-${made}.txt`, file_text: 'a\nb\n' })(
        client,
        at,
      ),
    )
  })
  for (const [at, client] of both.entries())
    await client.exec(sessions[at] as string, 'text_editor_code_execution', {
      command: 'create',
      path: 'notes.txt',
      file_text: 'one\ntwo\nthree\n',
    })
  await compare('editor: view', 40, both, edit({ command: 'view' }))
  await compare('editor: insert', 40, both, edit({ command: 'insert', insert_line: 1, new_str: 'more' }))
  await compare('editor: str_replace and undo', 40, both, async (client, at) => {
    const there = await edit({ command: 'str_replace', old_str: 'one', new_str: 'uno' })(client, at)
    return there + (await edit({ command: 'undo_edit' })(client, at))
  })
  await compare('list of files', 40, both, (client, at) => timed(() => client.list(sessions[at] as string)))
  for (const [at, client] of both.entries()) await client.destroy(sessions[at] as string)
}

async function files(both: Both): Promise<void> {
  const sessions: string[] = []
  for (const client of both) sessions.push(await client.create())
  for (const [megabytes, rounds] of [
    [1, 40],
    [10, 15],
  ] as const) {
    const bytes = Buffer.alloc(megabytes * 1_000_000, 'tollgate ')
    const path = `${megabytes}.bin`
    const put = (client: BenchClient, at: 0 | 1) => timed(() => client.put(sessions[at] as string, path, bytes))
    const get = async (client: BenchClient, at: 0 | 1) => {
      let size = 0
      const ms = await timed(async () => {
        size = await client.get(sessions[at] as string, path)
      })
      if (size !== bytes.length) throw new Error(`${size} of ${bytes.length} bytes came back`)
      return ms
    }
    await compare(`file PUT of ${megabytes} MB`, rounds, both, put)
    await compare(`file GET of ${megabytes} MB`, rounds, both, get)
  }
  for (const [at, client] of both.entries()) await client.destroy(sessions[at] as string)
}

async function firstResults(both: Both, hasPandas: boolean): Promise<void> {
  const first = (code: string) => async (client: BenchClient) => {
    let session = ''
    const ms = await timed(async () => {
      session = await client.create()
      await client.exec(session, 'code_execution', { code })
    })
    await client.destroy(session)
    await new Promise((done) => setTimeout(done, REFILL_MS)) // the pool is filled again meanwhile
    return ms
  }
  await compare('create from the warm pool', 40, both, async (client) => {
    let session = ''
    const ms = await timed(async () => {
      session = await client.create()
    })
    await client.destroy(session)
    await new Promise((done) => setTimeout(done, REFILL_MS))
    return ms
  })
  await compare('create and first result', 40, both, first('print(1)'))
  if (hasPandas) await compare('create and first pandas result', 10, both, first(PANDAS))
  else console.log('create and first pandas result: skipped, this Python has no pandas')
}

const REFILL_MS = 60
const PANDAS = 'import numpy, pandas\nprint(pandas.DataFrame({"a": [1, 2, 3]}).a.sum())'

/** 16 clients, each of which creates a session, runs five calls in it and gives it back, over and over. */
async function cycles(both: Both): Promise<void> {
  const SECONDS = 4
  const rate = async (client: BenchClient): Promise<number> => {
    const until = performance.now() + SECONDS * 1_000
    let done = 0
    const began = performance.now()
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        while (performance.now() < until) {
          const session = await client.create()
          for (let call = 0; call < 5; call++) await client.exec(session, 'code_execution', { code: 'x = 1\nprint(x)' })
          await client.destroy(session)
          done++
        }
      }),
    )
    return (done * 1_000) / (performance.now() - began)
  }
  const rates: [number[], number[]] = [[], []]
  for (let round = 0; round < 3; round++) for (const at of [0, 1] as const) rates[at].push(await rate(both[at]))
  const [ours, theirs] = rates
  console.log(
    `${ratioLine(`cycles of ${CLIENTS} clients (create, 5 calls, destroy)`, ours, theirs)}  ${round(median(ours), 1)}/s, plain ${round(median(theirs), 1)}/s`,
  )
}

/** What a session adds to the proportional memory of the backend and everything that it started. */
async function memory({ client, pid }: Backend, hasPandas: boolean): Promise<void> {
  const each = async (code: string | undefined) => {
    const before = proportionalBytes(pid)
    const sessions: string[] = []
    for (let made = 0; made < IDLE_SESSIONS; made++) {
      const session = await client.create()
      sessions.push(session)
      if (code) await client.exec(session, 'code_execution', { code })
    }
    await new Promise((done) => setTimeout(done, 1_000))
    const bytes = (proportionalBytes(pid) - before) / IDLE_SESSIONS
    for (const session of sessions) await client.destroy(session)
    await new Promise((done) => setTimeout(done, 1_000))
    return `${round(bytes / 1024 / 1024)} MiB`
  }
  console.log(
    `memory of one of ${IDLE_SESSIONS} sessions (PSS): idle ${await each(undefined)}, after print(1) ${await each('print(1)')}`,
  )
  if (hasPandas) console.log(`the same after a pandas result: ${await each(PANDAS)}`)
}

function proportionalBytes(pid: number): number {
  const own = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) * 1024
  return own + childrenOf(pid).reduce((sum, child) => sum + proportionalBytes(child), 0)
}

const childrenOf = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' '))
    .filter((child) => child !== '')
    .map(Number)

async function startOurs(python: string): Promise<Backend> {
  const child = spawn(
    process.execPath,
    ['--import', join(root, 'scripts/ts.mjs'), join(root, 'services/sandbox/main.ts')],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const { preload } = defaultSandboxSettings
  child.stdin.write(`${JSON.stringify({ python, maxSessions: 256, warmSessions: 4, preload })}\n`)
  const url = await new Promise<string>((resolve, reject) => {
    const lines = createInterface({ input: child.stdout })
    lines.on('line', (line) => {
      const said = JSON.parse(line) as { msg: string; url?: string; isolation?: string }
      if (said.msg !== 'sandbox serves' || !said.url) return
      console.log(`isolation: ${said.isolation}, ${python}`)
      resolve(said.url)
    })
    lines.once('close', () => reject(new Error('the sandbox did not start')))
  })
  return backend(child, url)
}

async function startPlain(python: string): Promise<Backend> {
  const port = await freePort()
  const child = spawn(python, ['-I', join(import.meta.dirname, 'plain_sandbox.py'), String(port)], {
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  const url = `http://127.0.0.1:${port}`
  for (let tries = 0; tries < 100; tries++) {
    if (
      await fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      break
    await new Promise((done) => setTimeout(done, 50))
  }
  return backend(child, url)
}

const backend = (child: ChildProcess, url: string): Backend => {
  const client = openBenchClient(url, CLIENTS)
  return {
    client,
    pid: child.pid as number,
    async stop() {
      await client.close()
      child.kill('SIGINT')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}
