import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram, freePort, type Program, type Service, startProgram } from './process.ts'

const run = promisify(execFile)
const cache = join(import.meta.dirname, '../../../node_modules/.cache/test-services')

/** A server of the test's own, which it may stop, kill and start again on the same port with the same store. */
export interface RestartableNats {
  url: string
  /** Ends it in good order. */
  stop(): Promise<void>
  /** As a machine that loses power: nothing is flushed, nobody is told. */
  kill(): Promise<void>
  /** Resolves once it answers. */
  start(): Promise<void>
  /** Ends it and removes its store. */
  close(): Promise<void>
}

/** Starts a `nats-server` program with JetStream, with whatever else `args` say. */
export async function restartableNats(args: string[] = []): Promise<RestartableNats> {
  const file = await natsProgram()
  const port = await freePort()
  const store = mkdtempSync(join(tmpdir(), 'tollgate-nats-'))
  const launch = () => startProgram(file, ['-a', '127.0.0.1', '-p', `${port}`, '-js', '-sd', store, ...args], { port })
  let program: Program | undefined = await launch()
  const end = async (signal: NodeJS.Signals) => {
    await program?.end(signal)
    program = undefined
  }
  return {
    url: `nats://127.0.0.1:${port}`,
    stop: () => end('SIGINT'),
    kill: () => end('SIGKILL'),
    async start() {
      program ??= await launch()
    },
    async close() {
      await end('SIGINT')
      rmSync(store, { recursive: true, force: true })
    },
  }
}

export async function natsFromProgram(): Promise<Service> {
  const { url, close } = await restartableNats()
  return { url, origin: await natsProgram(), stop: close }
}

const unpacked = join(cache, 'nats/usr/sbin')

const natsProgram = async (): Promise<string> => findProgram('nats-server', [unpacked]) ?? (await unpackDebian())

/** Debian's package unpacked beside the modules: nothing is installed on the machine, and no service starts there. */
async function unpackDebian(): Promise<string> {
  if (!findProgram('apt-get') || !findProgram('dpkg-deb')) {
    throw new Error('no NATS for the tests: put nats-server on the PATH, start Docker, or set TEST_NATS_URL')
  }
  mkdirSync(cache, { recursive: true })
  const work = mkdtempSync(join(cache, 'unpack-'))
  try {
    const download = () =>
      run('apt-get', ['download', '-o', 'APT::Sandbox::User=root', 'nats-server'], { cwd: work, timeout: 120_000 })
    await download().catch(async () => {
      await run('apt-get', ['update'], { timeout: 120_000 })
      await download()
    })
    const archive = readdirSync(work).find((name) => name.endsWith('.deb'))
    if (!archive) throw new Error('apt-get download nats-server left no package')
    await run('dpkg-deb', ['-x', archive, 'nats'], { cwd: work })
    // whoever unpacked first wins: another run may be doing the same
    if (!existsSync(unpacked)) renameSync(join(work, 'nats'), join(cache, 'nats'))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  return join(unpacked, 'nats-server')
}
