import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A server that tests may use: where it answers, where it came from, how to end it. */
export interface Service {
  url: string
  origin: string
  stop(): Promise<void>
}

export interface Account {
  uid: number
  gid: number
}

interface ProgramOptions {
  /** The port on 127.0.0.1 whose answer says that the program has started. */
  port: number
  account?: Account | undefined
}

export interface Program {
  pid: number
  /** Asks with `signal` (SIGINT unless told), and kills what has not ended 10 s later. */
  end(signal?: NodeJS.Signals): Promise<void>
}

/** The first file of that name on the PATH, where Debian and Homebrew put servers, or in `more`. */
export function findProgram(name: string, more: string[] = []): string | undefined {
  const path = (process.env.PATH ?? '').split(delimiter)
  const folders = [...path, '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin', ...more]
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file))
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('the system gave no port')
  return address.port
}

/** Starts a server and resolves once its port answers; what it said last explains why it did not. */
export async function startProgram(file: string, args: string[], { port, account }: ProgramOptions): Promise<Program> {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: '/', ...account })
  const said = lastWords(child)
  let ended: string | undefined
  const exit = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      ended = error.message
      resolve()
    })
    child.once('exit', (code, signal) => {
      ended ??= `it ended with ${signal ?? code}`
      resolve()
    })
  })
  const killWithUs = () => child.kill('SIGKILL')
  process.once('exit', killWithUs)
  void exit.then(() => process.off('exit', killWithUs))

  const end = async (signal: NodeJS.Signals = 'SIGINT') => {
    child.kill(signal)
    const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
    await exit
    clearTimeout(late)
  }
  const startBy = Date.now() + 30_000
  while (ended === undefined) {
    // a machine that stood still is no reason to give up: what is late is asked once more
    const isLate = Date.now() >= startBy
    if (await answers(port)) return { pid: child.pid ?? 0, end }
    if (isLate) break
    await sleep(20)
  }
  const why = ended ?? 'no answer in 30 s'
  await end('SIGKILL')
  throw new Error(`${file} did not start: ${why}\n${said()}`)
}

function lastWords(child: ChildProcess): () => string {
  let words = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      words = (words + text).slice(-2_000)
    })
  }
  return () => words
}

const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
