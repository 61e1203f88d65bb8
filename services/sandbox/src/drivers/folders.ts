import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PREFIX = 'tollgate-sandbox-'
const ANSWER_MS = 1_000

/** Where a zygote listens, inside its folder. */
export const socketIn = (folder: string): string => join(folder, 'sockets', 's')

/** A folder for one zygote, named for the server it belongs to. */
export const makeFolder = (): Promise<string> => mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`))

/**
 * Removes what servers left that were killed together with their zygotes, when nobody was there to tidy up. A folder is
 * given up on only if its server is not among the processes seen from here, and nobody listens in it: where containers
 * share a temporary folder, one of them does not see the other's processes.
 */
export async function removeLeftovers(): Promise<void> {
  const names = await readdir(tmpdir())
  await Promise.all(names.filter((name) => name.startsWith(PREFIX)).map((name) => removeIfLeft(name)))
}

async function removeIfLeft(name: string): Promise<void> {
  const pid = Number(/^\d+(?=-)/.exec(name.slice(PREFIX.length))?.[0] ?? Number.NaN)
  if (!Number.isSafeInteger(pid) || pid <= 0 || isRunning(pid)) return
  const folder = join(tmpdir(), name)
  if (await isListening(socketIn(folder))) return
  await rm(folder, { recursive: true, force: true }).catch(() => {}) // somebody else's: theirs to remove
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (thrown) {
    return !(thrown instanceof Error && 'code' in thrown && thrown.code === 'ESRCH')
  }
}

/** False only when it is certain: there is no such socket, or its owner is gone. */
function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.setTimeout(ANSWER_MS, () => answer(true))
    socket.once('connect', () => answer(true))
    socket.once('error', (error: NodeJS.ErrnoException) =>
      answer(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'),
    )
    const answer = (listening: boolean) => {
      socket.destroy()
      resolve(listening)
    }
  })
}
