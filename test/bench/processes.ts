import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Measured {
  url: string
  /** User and system CPU of the process so far, in microseconds. */
  cpuMicros(): number
  rssBytes(): number
  /** What it holds when nothing is left that could be collected; of a program of this repository. */
  memory(): Promise<NodeJS.MemoryUsage>
  stop(): Promise<void>
}

const root = join(import.meta.dirname, '../..')

/** Starts a program of this repository under the TypeScript loader; ready when `probe` answers. */
export function startScript(file: string, args: string[], url: string, env: NodeJS.ProcessEnv = {}): Promise<Measured> {
  const before = ['scripts/ts.mjs', 'test/bench/memory-probe.ts'].flatMap((loaded) => ['--import', join(root, loaded)])
  return startNode([...before, join(root, file), ...args], url, env)
}

export async function startNode(args: string[], url: string, env: NodeJS.ProcessEnv = {}): Promise<Measured> {
  let said = ''
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (data: Buffer) => {
      said = (said + data.toString()).slice(-4_000)
    })
  await answers(url, child, () => said)
  const pid = child.pid as number
  return {
    url,
    cpuMicros: () => cpuMicros(pid),
    rssBytes: () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024,
    memory: () =>
      new Promise((resolve, reject) => {
        child.on('message', function hear(said) {
          if (typeof said !== 'object' || said === null || !('heapUsed' in said)) return
          child.off('message', hear)
          resolve(said as NodeJS.MemoryUsage)
        })
        child.send('memory', (error) => error && reject(error))
      }),
    async stop() {
      if (child.exitCode !== null) return
      const exited = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await exited
      clearTimeout(late)
    },
  }
}

/** Of all threads; the nanoseconds on a core are the first number. /proc/<pid>/stat counts in ticks of 10 ms. */
function cpuMicros(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  return threads.reduce((sum, thread) => sum + nanosOf(`/proc/${pid}/task/${thread}/schedstat`), 0) / 1_000
}

const nanosOf = (file: string): number => Number(readFileSync(file, 'utf8').split(' ', 1)[0])

async function answers(url: string, child: ChildProcess, said: () => string): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    if (child.exitCode !== null) throw new Error(`a program stopped while starting:\n${said()}`)
    const answered = await fetch(url, { signal: AbortSignal.timeout(1_000) }).then(
      (response) => response.status !== 503,
      () => false,
    )
    if (answered) return
    await sleep(100)
  }
  child.kill('SIGKILL')
  throw new Error(`nothing answers at ${url}:\n${said()}`)
}
