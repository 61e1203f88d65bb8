import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'

const root = join(import.meta.dirname, '../../../..')
/** What the deployment files name, for a container in which sessions may have namespaces. */
export const shippedProfile = join(root, 'deploy/sandbox-seccomp.json')
/** Names of system calls become numbers by the kernel's headers. */
export const canProfile = process.arch === 'x64' && existsSync('/usr/include/x86_64-linux-gnu/asm/unistd_64.h')

/** Whoever is not root cannot take on another user, nor make the namespace that keeps these tests from the machine. */
export const canContain = process.getuid?.() === 0

interface Result {
  stdout: string
  stderr: string
  exitCode: number
  ending?: string
  lost?: string
  ms: number
}
export interface Contained {
  first: { ready?: string; refused?: string; selfTest?: string | null; pid: number }
  folder: string
  ask(kind: string, text: string, seconds?: number): Promise<Result>
  close(): Promise<void>
}

export const NOBODY = 65_534

export function spawnContained(user: number, folder: string, script: string, ...args: string[]): ChildProcess {
  return spawnWith({}, user, folder, script, ...args)
}

function spawnWith(
  more: NodeJS.ProcessEnv,
  user: number,
  folder: string,
  script: string,
  ...args: string[]
): ChildProcess {
  const contained = ['-I', join(import.meta.dirname, 'run.py'), String(user)]
  const node = [process.execPath, '--import', join(root, 'scripts/ts.mjs'), script, ...args]
  const env = { PATH: '/usr/bin:/bin', TMPDIR: folder, HOME: folder, ...more }
  return spawn('python3', [...contained, ...node], { cwd: root, stdio: ['pipe', 'pipe', 'inherit'], env })
}

export async function contain(user: number, request: object, profile?: string): Promise<Contained> {
  const folder = await mkdtemp(join(tmpdir(), 'contained-'))
  await chmod(folder, 0o777)
  const script = join(import.meta.dirname, 'cases.ts')
  const more = profile === undefined ? {} : { TEST_SECCOMP_PROFILE: profile }
  const child = spawnWith(more, user, folder, script, JSON.stringify(request))
  const lines: AsyncIterator<string> = (createInterface({ input: child.stdout as NodeJS.ReadableStream }) as Interface)[
    Symbol.asyncIterator
  ]()
  const next = async () => JSON.parse((await lines.next()).value ?? '{}')
  const first = await next()
  if (!first.ready && !first.refused) throw new Error('the contained server did not start')
  return {
    first,
    folder,
    async ask(kind, text, seconds = 10) {
      child.stdin?.write(`${JSON.stringify({ kind, text, seconds })}\n`)
      return next()
    },
    async close() {
      child.stdin?.end()
      if (child.exitCode === null) await new Promise((done) => child.once('exit', done))
      await rm(folder, { recursive: true, force: true })
    },
  }
}
