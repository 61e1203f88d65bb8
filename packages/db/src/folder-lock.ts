import { link, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRunning, ownIdentity, type ProcessIdentity } from './process-identity.ts'

const BEAT_MS = 2_000
/** A holder that cannot be seen from here (in another container, say) is gone when its lock was not touched for so long. */
const SILENT_MS = 5 * BEAT_MS
/** Nobody needs longer to put a lock in a stale one's place. */
const TAKEOVER_MS = 10_000

/**
 * Keeps a PGlite folder to one process: two on one folder lose rows without a word. The lock is `<folder>.lock`, beside
 * it since the folder itself must be empty at its first start. A lock whose process is gone is taken over. Returns how to
 * give it back.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const lock = `${folder}.lock`
  const own = JSON.stringify(await ownIdentity())
  while (!(await place(lock, own))) {
    const found = await read(lock)
    if (found === undefined) continue
    if (await holds(found, lock)) throw new Error(refusal(folder, lock, found.identity))
    await remove(lock, found.text)
  }
  const beat = setInterval(() => {
    // A missed beat is made up for by the next; without a lock file there is nothing to beat for.
    void utimes(lock, new Date(), new Date()).catch(() => {})
  }, BEAT_MS)
  beat.unref()
  return async () => {
    clearInterval(beat)
    const found = await read(lock)
    if (found?.text === own) await rm(lock, { force: true })
  }
}

interface Found {
  text: string
  /** Undefined when the file is not one of ours. */
  identity: ProcessIdentity | undefined
}

/** Whoever cannot be seen is given the time to show that it lives. */
async function holds(found: Found, lock: string): Promise<boolean> {
  if (found.identity === undefined) return true
  const running = await isRunning(found.identity)
  if (running !== undefined) return running
  const first = await touchedAt(lock)
  for (let touched = first; touched !== undefined; touched = await touchedAt(lock)) {
    if (touched !== first) return true
    if (Date.now() - touched > SILENT_MS) return false
    await sleep(BEAT_MS / 4)
  }
  return false
}

/** A file that appears whole or not at all, and never over another. */
async function place(path: string, text: string): Promise<boolean> {
  const draft = `${path}.${process.pid}.${Math.random().toString(36).slice(2)}`
  await writeFile(draft, text)
  try {
    await link(draft, path)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

/** Only who holds the takeover mark removes a stale lock, and only if it is still that one: it may be somebody's new one. */
async function remove(lock: string, stale: string): Promise<void> {
  const mark = `${lock}.takeover`
  if (!(await place(mark, String(process.pid)))) {
    const marked = await touchedAt(mark)
    if (marked !== undefined && Date.now() - marked > TAKEOVER_MS) await rm(mark, { force: true })
    return void (await sleep(50))
  }
  try {
    if ((await read(lock))?.text === stale) await rm(lock, { force: true })
  } finally {
    await rm(mark, { force: true })
  }
}

async function read(lock: string): Promise<Found | undefined> {
  const text = await readFile(lock, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : { text, identity: parse(text) }
}

function parse(text: string): ProcessIdentity | undefined {
  try {
    const { pid, began, realm } = JSON.parse(text)
    return Number.isInteger(pid) && typeof realm === 'string' ? { pid, began: began ?? null, realm } : undefined
  } catch {
    return undefined
  }
}

const touchedAt = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  )

function refusal(folder: string, lock: string, holder: ProcessIdentity | undefined): string {
  if (holder === undefined) return `${lock} is not a lock of ours: remove it if nothing uses ${folder}`
  return `${folder} is in use by process ${holder.pid}: stop it, give this one another folder, or use Postgres for both`
}
