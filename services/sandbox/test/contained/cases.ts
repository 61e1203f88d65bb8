import { readdirSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { zygoteConfig } from '../../src/drivers/environment.ts'
import { selfTest } from '../../src/drivers/self-test.ts'
import { startZygote } from '../../src/drivers/zygote.ts'
import { probePython } from '../../src/python.ts'
import { defaultSandboxSettings, isolationLevels } from '../../src/settings.ts'
import { log } from '../harness.ts'

// Runs programs in a session of the level that is asked for, with a neighbour beside it, and prints what came of each as
// a line of JSON: for levels that cannot be chosen on a machine that gives a better one.

const request = z.object({
  level: z.enum(isolationLevels),
  landlockAtMost: z.int().optional(),
  memoryMiB: z.int().default(1_536),
  workspaceMiB: z.int().default(512),
})
const { level, landlockAtMost, memoryMiB, workspaceMiB } = request.parse(JSON.parse(process.argv[2] ?? ''))
const say = (value: object) => console.log(JSON.stringify(value))
const MIB = 1024 * 1024

const python = await probePython({ python: '/usr/bin/python3' })
if (!python.ok) throw new Error(python.reason)
const limits = { ...defaultSandboxSettings.limits, memoryBytes: memoryMiB * MIB, workspaceBytes: workspaceMiB * MIB }
const config = zygoteConfig(level, python.path, { ...defaultSandboxSettings, limits })
const zygote = await startZygote(python.path, { ...config, landlock_at_most: landlockAtMost ?? 99 }, log).catch(
  (error: Error) => {
    say({ refused: error.message })
    process.exit(0)
  },
)
say({ ready: zygote.description, selfTest: (await selfTest(zygote, level)) ?? null, pid: process.pid })

/** Of this PID namespace, those that a test of command line and parent takes; zombies left out. */
function processes(wanted: (command: string, parent: number) => boolean): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
      const parent = Number(
        readFileSync(`/proc/${name}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ')[1],
      )
      return command && wanted(command, parent) ? [Number(name)] : []
    } catch {
      return [] // ended while we looked
    }
  })
}

const stays = { hasLeft: false, onLeave: () => {} }
const neighbour = await zygote.create()
let session = await zygote.create()
const call = z.object({
  kind: z.enum(['python', 'shell', 'fresh', 'neighbour', 'crash', 'files']),
  text: z.string(),
  seconds: z.int(),
})

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, text, seconds } = call.parse(JSON.parse(line))
  if (kind === 'fresh') {
    session.end()
    session = await zygote.create()
    say({})
    continue
  }
  if (kind === 'files') {
    // larger than what a session sends without the kernel's help, then as a program sees it
    await session.save('in/put.txt', Buffer.alloc(300_000, text), { exclusive: true })
    const pieces: Buffer[] = []
    const data = (piece: Buffer) => void pieces.push(Buffer.from(piece))
    await session.read('in/put.txt', 100_000, 1_000_000, { begin: () => {}, data })
    const viewed = await session.view('in/put.txt', 1_000)
    const names = await session.view('in', 1_000)
    const refused = await session.view('/etc/passwd', 10).catch((error: Error) => error.message)
    const found = {
      read: Buffer.concat(pieces).toString(),
      viewed: 'data' in viewed && viewed.data.toString(),
      names,
      refused,
    }
    say({ stdout: JSON.stringify(found) })
    continue
  }
  if (kind === 'crash') {
    for (const pid of processes((_, parent) => parent === process.pid)) process.kill(pid, 'SIGKILL')
    await zygote.ended
    const left = () => processes((command) => command.includes('zygote.py') || command.includes(text))
    for (let tries = 0; tries < 50 && left().length > 0; tries += 1) await new Promise((done) => setTimeout(done, 100))
    say({ stdout: JSON.stringify(left()) })
    break
  }
  const of = kind === 'neighbour' ? neighbour : session
  const began = performance.now()
  const done = await of
    .run({ kind: kind === 'shell' ? 'shell' : 'python', text, timeoutSeconds: seconds }, stays)
    .catch((error: Error) => ({ lost: error.name }))
  const ms = performance.now() - began
  if (!('stdout' in done)) say({ lost: done.lost, ms })
  else say({ ...done, stdout: done.stdout.bytes.toString(), stderr: done.stderr.bytes.toString(), ms })
}
await zygote.close()
