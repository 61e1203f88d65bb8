import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Measured {
  url: string
  /** User and system CPU of the process so far, in microseconds. */
  cpuMicros(): number
  rssBytes(): number
  stop(): Promise<void>
}

const root = join(import.meta.dirname, '../..')
const TICK_MICROS = 10_000 // one clock tick of /proc/<pid>/stat, fixed at 100 Hz for user space

/** Starts a program of this repository under the TypeScript loader; ready when `probe` answers. */
export function startScript(file: string, args: string[], url: string, env: NodeJS.ProcessEnv = {}): Promise<Measured> {
  return startNode(['--import', join(root, 'scripts/ts.mjs'), join(root, file), ...args], url, env)
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

/** utime and stime, fields 14 and 15; the name in field 2 may hold spaces, so counting starts behind it. */
function cpuMicros(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MICROS
}

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
