import { spawn } from 'node:child_process'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  /** Since the process began. */
  afterMs: number
}

/** A program as an operator starts it: a process of its own, known by its output and its signals alone. */
export interface ServiceProcess {
  readonly pid: number
  readonly ended: Promise<Ended>
  /** How it ended; undefined while it runs. */
  readonly end: Ended | undefined
  signal(name: NodeJS.Signals): void
  /** Everything it wrote so far, standard output and error together. */
  output(): string
}

interface Spawning {
  env: Record<string, string>
  cwd?: string
  /** Its signals go to it and to all it started, as a terminal's do. */
  terminal?: boolean
}

/** What a process needs to run at all. Nothing else of the test's own environment reaches it. */
export const bareEnvironment = (): Record<string, string> =>
  Object.fromEntries(
    ['PATH', 'HOME', 'TMPDIR', 'LANG'].flatMap((name) => {
      const value = process.env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )

export const startService = (command: string, spawning: Spawning): ServiceProcess =>
  startProcess(process.execPath, ['--import', './scripts/ts.mjs', 'services/run.ts', command], spawning)

export function startProcess(
  file: string,
  args: string[],
  { env, cwd = root, terminal = false }: Spawning,
): ServiceProcess {
  const began = performance.now()
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: terminal })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  let end: Ended | undefined
  const ended = new Promise<Ended>((resolve) => {
    const finish = (code: number | null, signal: NodeJS.Signals | null) => {
      end ??= { code, signal, afterMs: performance.now() - began }
      resolve(end)
    }
    child.once('error', (error) => {
      output += `\n${error.message}\n`
      finish(null, null)
    })
    // its output is complete only once its pipes are closed; a grandchild may hold them, so that is not waited for
    child.once('exit', (code, signal) => setImmediate(finish, code, signal))
  })
  const signal = (name: NodeJS.Signals) => {
    if (!terminal || child.pid === undefined) return void child.kill(name)
    try {
      process.kill(-child.pid, name)
    } catch {
      // all of them are gone
    }
  }
  const killWithUs = () => signal('SIGKILL')
  process.once('exit', killWithUs)
  void ended.then(() => process.off('exit', killWithUs))

  return {
    pid: child.pid ?? 0,
    ended,
    get end() {
      return end
    },
    signal,
    output: () => output,
  }
}
