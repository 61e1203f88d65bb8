import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import type { IsolationLevel } from '../settings.ts'
import type { Caller, Sandbox } from './driver.ts'
import type { Zygote } from './zygote.ts'

const found = z.object({
  user: z.int(),
  escaped: z.array(z.string()),
  missing: z.array(z.string()),
  variables: z.array(z.string()),
})
const sibling = z.object({ pid: z.int(), pids: z.string(), workspace: z.string() })
const SIBLING = `
import json, os
try:
    pids = os.readlink("/proc/self/ns/pid")
except OSError:
    pids = ""
print(json.dumps({"pid": os.getpid(), "pids": pids, "workspace": os.getcwd()}))
`
const SECONDS = 20
const stays: Caller = { hasLeft: false, onLeave: () => {} }

/**
 * Two throwaway sessions, one of which tries to reach the other, the server and the kernel's riskier parts. What a
 * kernel or a container runtime is supposed to do is not believed: it is tried. Says what is wrong with the level, if
 * anything is.
 */
export async function selfTest(zygote: Zygote, level: IsolationLevel): Promise<string | undefined> {
  const canary = await plantCanaries()
  const sessions: Sandbox[] = []
  try {
    const [tester, other] = [await zygote.create(), await zygote.create()]
    sessions.push(tester, other)
    const target = { ...canary.target, ...sibling.parse(await runJson(other, SIBLING)), never_root: true }
    const program = await readFile(join(import.meta.dirname, '../python/self_test.py'), 'utf8')
    const result = found.parse(await runJson(tester, `import json\ntarget = json.loads(${quoted(target)})\n${program}`))
    if (result.missing.length > 0) return `a session cannot ${result.missing.join(', ')}`
    if (level === 'process') return undefined
    if (result.user === 0) return 'code would run as root'
    if (result.variables.some((name) => !expected.has(name))) return 'a session sees variables of the server'
    if (canary.reached()) return 'a session reached a socket of the host'
    return result.escaped.length > 0 ? `a session ${result.escaped.join(', ')}` : undefined
  } catch (thrown) {
    return `its self-test failed: ${thrown instanceof Error ? thrown.message : 'unknown reason'}`
  } finally {
    for (const session of sessions) session.end()
    await canary.remove()
  }
}

const expected = new Set([
  ...['PATH', 'USER', 'HOME', 'TMPDIR', 'LANG', 'PYTHONUNBUFFERED', 'PYTHONDONTWRITEBYTECODE'],
  ...['MPLBACKEND', 'MPLCONFIGDIR', 'OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'MALLOC_ARENA_MAX'],
])

/** JSON twice is a Python string that holds JSON. */
const quoted = (value: object): string => JSON.stringify(JSON.stringify(value))

async function runJson(sandbox: Sandbox, text: string): Promise<unknown> {
  const call = { kind: 'python' as const, text, timeoutSeconds: SECONDS }
  const { stdout, stderr, exitCode } = await sandbox.run(call, stays)
  if (exitCode !== 0) throw new Error(stderr.bytes.toString().trim().split('\n').at(-1) ?? `exit code ${exitCode}`)
  return JSON.parse(stdout.bytes.toString())
}

/** Things of ours in plain reach of anybody on this machine. */
async function plantCanaries() {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-canary-'))
  let connections = 0
  const count = () => {
    connections += 1
  }
  const tcp = createServer(count).listen(0, '127.0.0.1')
  const unix = createServer(count).listen(join(folder, 'socket'))
  await Promise.all([once(tcp, 'listening'), once(unix, 'listening')])
  await writeFile(join(folder, 'file'), randomBytes(16).toString('hex'), { mode: 0o644 })
  // only what keeps sessions apart may stand between them and these, not the folder's mode
  await chmod(folder, 0o755)
  await chmod(join(folder, 'socket'), 0o777)
  const { port } = tcp.address() as AddressInfo
  return {
    target: { port, file: join(folder, 'file'), socket: join(folder, 'socket') },
    reached: () => connections > 0,
    async remove() {
      tcp.close()
      unix.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
