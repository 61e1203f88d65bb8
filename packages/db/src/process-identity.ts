import { execFile } from 'node:child_process'
import { readFile, readlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { promisify } from 'node:util'

/** A process, told apart from a later one that was given its number. */
export interface ProcessIdentity {
  pid: number
  /** When it began, in whatever words the system has for it; null where the system does not say. */
  began: string | null
  /** Where its number means something: two containers may each have a process 1. */
  realm: string
}

export async function ownIdentity(): Promise<ProcessIdentity> {
  return { pid: process.pid, began: await beganAt(process.pid), realm: await realm() }
}

/** True while the very process that `identity` names runs; undefined when it cannot be seen from here. */
export async function isRunning(identity: ProcessIdentity): Promise<boolean | undefined> {
  if (identity.realm !== (await realm())) return undefined
  if (!exists(identity.pid)) return false
  const began = await beganAt(identity.pid)
  return began === null || identity.began === null || began === identity.began
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it is there, and somebody else's.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Machine, boot and process-number space; containers on one machine differ in the last. */
async function realm(): Promise<string> {
  const [boot, numbers] = await Promise.all([
    readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => ''),
    readlink('/proc/self/ns/pid').catch(() => ''),
  ])
  return [hostname(), boot.trim(), numbers].join('|')
}

/** Field 22 of Linux's /proc/<pid>/stat, counted after the name in parentheses, which may hold anything; else what `ps` says. */
async function beganAt(pid: number): Promise<string | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)
  if (stat !== null) return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  const asked = await promisify(execFile)('ps', ['-o', 'lstart=', '-p', String(pid)], { timeout: 2_000 }).catch(
    () => null,
  )
  return asked?.stdout.trim() || null
}
