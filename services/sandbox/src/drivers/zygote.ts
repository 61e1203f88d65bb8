import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Log } from '@tollgate/telemetry'
import { z } from 'zod'
import type { Shared } from './calls.ts'
import type { Sandbox } from './driver.ts'
import type { ZygoteConfig } from './environment.ts'
import { makeFolder, socketIn } from './folders.ts'
import { messageReader, packMessage } from './framing.ts'
import { type Awaited, greet } from './greeting.ts'
import { kinds, packOrder } from './orders.ts'
import { intoReusedMemory } from './reused-memory.ts'

/** The process that sessions are forked from, and the socket they come to us by. */
export interface Zygote {
  readonly description: string
  readonly python: string
  /** Rejects when the machine refuses another process, or none answers in time. */
  create(): Promise<Sandbox>
  /** Resolves when the process is gone, and all its sessions with it. */
  readonly ended: Promise<void>
  close(): Promise<void>
}

export class Refused extends Error {
  override readonly name = 'Refused'
}

const ENTRY = join(import.meta.dirname, '../python/zygote.py')
const START_MS = 30_000
const CREATE_MS = 10_000
const CLOSE_MS = 5_000
const MAX_ERROR_LINES = 1_000

const fromZygote = z.union([
  z.object({ ready: z.string(), python: z.string() }),
  z.object({ refused: z.string() }),
  z.object({ failed: z.int(), reason: z.string() }),
  z.object({ busy: z.int() }),
])

/** Rejects with `Refused` when this machine does not allow what the level needs. */
export async function startZygote(python: string, config: ZygoteConfig, log: Log): Promise<Zygote> {
  const folder = await makeFolder()
  await mkdir(join(folder, 'root'))
  await mkdir(join(folder, 'sockets'), { mode: 0o700 })
  const awaited = new Map<number, Awaited>()
  /** What to do about a session that was looked at and is not still, by its number. */
  const stirs = new Map<number, () => void>()
  const sockets = new Set<Socket>()
  const server = createServer({ pauseOnConnect: true }, (accepted) => {
    const socket = intoReusedMemory(accepted)
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    greet(socket, awaited, config.limits.output_bytes)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(socketIn(folder), resolve)
  })

  // a process group of its own: Ctrl-C in a terminal is for the server, which then ends it in order
  const child = spawn(python, ['-I', '-B', ENTRY], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    env: { PATH: '/usr/bin:/bin' },
    cwd: '/',
    detached: true,
  })
  logErrors(child, log)
  const control = child.stdio[3] as Socket
  control.on('error', () => {}) // its end is seen as `exit`
  const gone = new AbortController()
  const ended = once(child, 'exit').then(async () => {
    gone.abort()
    for (const { reject } of awaited.values()) reject(new Error('the zygote has ended'))
    awaited.clear()
    // where no namespace ends them with the zygote, sessions end when nobody listens to them any more
    for (const socket of sockets) socket.destroy()
    await new Promise((done) => server.close(done))
    await rm(folder, { recursive: true, force: true })
  })
  const close = async () => {
    control.destroy()
    const late = setTimeout(() => child.kill('SIGKILL'), CLOSE_MS)
    await ended
    clearTimeout(late)
  }

  try {
    control.write(packMessage({ ...config, folder }))
    const { ready, python: version } = await Promise.race([
      listenTo(control, awaited, stirs),
      ended.then(() => Promise.reject(new Refused('the Python process ended at its start'))),
      once(AbortSignal.timeout(START_MS), 'abort').then(() => Promise.reject(new Refused('no answer in time'))),
    ])
    return { description: ready, python: version, ended, close, create: creator(control, awaited, stirs, gone.signal) }
  } catch (thrown) {
    await close()
    throw thrown
  }
}

/** Asks for sessions. Each comes by a connection of its own, and shows a ticket that is good for once. */
function creator(
  control: Socket,
  awaited: Map<number, Awaited>,
  stirs: Map<number, () => void>,
  gone: AbortSignal,
): () => Promise<Sandbox> {
  const shared: Shared = {
    short: 0,
    get making() {
      return awaited.size
    },
  }
  let numbers = 0
  return () => {
    if (gone.aborted) return Promise.reject(new Error('the zygote has ended'))
    numbers += 1
    const number = numbers
    const ticket = randomBytes(16)
    const end = () => void control.write(packOrder(kinds.end, number))
    const look = (stir: () => void) => {
      stirs.set(number, stir)
      control.write(packOrder(kinds.look, number))
    }
    return new Promise((resolve, reject) => {
      const settle = () => {
        clearTimeout(late)
        awaited.delete(number)
      }
      const late = setTimeout(() => {
        settle()
        end()
        reject(new Error('no session in time'))
      }, CREATE_MS)
      awaited.set(number, {
        ticket,
        end,
        around: { shared, look },
        resolve: (sandbox) => {
          settle()
          void sandbox.ended.then(() => stirs.delete(number))
          resolve(sandbox)
        },
        reject: (error) => {
          settle()
          reject(error)
        },
      })
      control.write(packOrder(kinds.open, number, ticket))
    })
  }
}

/** Resolves with the zygote's word that it is ready; what it says of a session later on is told to whoever waits for it. */
function listenTo(
  control: Socket,
  awaited: ReadonlyMap<number, Awaited>,
  stirs: ReadonlyMap<number, () => void>,
): Promise<{ ready: string; python: string }> {
  const reader = messageReader()
  return new Promise((resolve, reject) => {
    control.on('data', (piece: Buffer) => {
      for (const { header } of reader.add(piece)) {
        const answer = fromZygote.parse(header)
        if ('ready' in answer) resolve(answer)
        else if ('refused' in answer) reject(new Refused(answer.refused))
        else if ('busy' in answer) stirs.get(answer.busy)?.()
        else awaited.get(answer.failed)?.reject(new Error(answer.reason))
      }
    })
  })
}

/** What Python says when something of ours goes wrong; a bounded number of lines, as sessions could cause it. */
function logErrors(child: ChildProcess, log: Log): void {
  let lines = 0
  createInterface({ input: child.stderr as Readable }).on('line', (line) => {
    lines += 1
    if (lines <= MAX_ERROR_LINES) log.warn({ line: line.slice(0, 500) }, 'the sandbox reports')
  })
}
