import { posix } from 'node:path'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { openDeadline } from '@tollgate/http'
import type { CallLimits, FileContent, Refusal, SeedFile, WorkspaceFile } from '../provider.ts'
import type { Handle, Leases } from './leases.ts'
import type { Figure } from './notebook.ts'
import { refused, timedOut } from './refusals.ts'

/** A folder of its own: what the template keeps in its user's home is no file of the session's. */
export const WORKSPACE = '/home/user/workspace'

const CALL_MS = 15_000
const TRANSFER_MS = 60_000
/** The vendor's client does not say what the agent takes a file for (FI-26). */
const UNTOLD = 'application/octet-stream'
/** Folders below each other that are listed, and files of a listing. */
const MAX_DEPTH = 16
const MAX_LISTED = 10_000

/** The absolute path; undefined where it leads out of the workspace (CP-18, CP-19). */
function within(path: string): string | undefined {
  const normal = posix.normalize(path)
  if (normal.startsWith('/') || normal === '..' || normal.startsWith('../') || normal.includes('\0')) return undefined
  return posix.join(WORKSPACE, normal).replace(/\/$/, '')
}

export async function listFiles(
  leases: Leases,
  handle: Handle,
  folder: string,
  limits: CallLimits,
): Promise<{ status: 'ok'; files: WorkspaceFile[] } | Refusal> {
  const path = within(folder)
  if (path === undefined) return refused
  const listed = await leases.use(handle, limits, CALL_MS, (signal) =>
    handle.sandbox.files.list(path, { depth: MAX_DEPTH, signal }),
  )
  if (listed.status === 'failed') return listed
  const files = listed.value
    .filter(({ type, path }) => String(type) === 'file' && path.startsWith(`${WORKSPACE}/`))
    .slice(0, MAX_LISTED)
    .map(({ path, size, modifiedTime }) => ({
      path: posix.relative(WORKSPACE, path),
      bytes: size,
      ...(modifiedTime === undefined ? {} : { modifiedAt: modifiedTime.getTime() / 1_000 }),
    }))
  return { status: 'ok', files }
}

/** Streamed: the deadline and the caller's signal hold until its last byte, or until it is destroyed. */
export async function getFile(
  leases: Leases,
  handle: Handle,
  file: string,
  limits: CallLimits,
): Promise<FileContent | Refusal> {
  const path = within(file)
  if (path === undefined) return refused
  const limit = openDeadline(Math.min(limits.deadline, Date.now() + TRANSFER_MS), limits.signal)
  const held = { signal: limit.signal, deadline: limits.deadline }
  try {
    const read = await leases.use(handle, held, TRANSFER_MS, () =>
      handle.sandbox.files.read(path, { format: 'stream', signal: limit.signal, streamIdleTimeoutMs: CALL_MS }),
    )
    if (read.status === 'failed') {
      limit.end()
      return read
    }
    const content = Readable.fromWeb(read.value as ReadableStream<Uint8Array>)
    content.on('error', () => {}) // whoever reads it sees it; one that nobody reads has nobody to tell
    content.once('close', limit.end)
    return { status: 'ok', mediaType: UNTOLD, content }
  } catch (thrown) {
    limit.end()
    limits.signal.throwIfAborted()
    if (limit.expired) return timedOut
    throw thrown
  }
}

export async function putFile(
  leases: Leases,
  handle: Handle,
  { path: name, content }: SeedFile,
  limits: CallLimits,
): Promise<{ status: 'ok'; path: string } | Refusal> {
  const path = within(name)
  if (path === undefined || path === WORKSPACE) return refused
  const body = Readable.toWeb(content) as globalThis.ReadableStream
  const written = await leases.use(handle, limits, TRANSFER_MS, (signal) =>
    handle.sandbox.files.write(path, body, { useOctetStream: true, signal }),
  )
  return written.status === 'failed' ? written : { status: 'ok', path: posix.relative(WORKSPACE, path) }
}

/** Figures that the code showed, as files under the first free names; those that cannot be written stay unnamed. */
export async function saveFigures(
  leases: Leases,
  handle: Handle,
  figures: readonly Figure[],
  limits: CallLimits,
): Promise<string[]> {
  if (figures.length === 0) return []
  const listed = await listFiles(leases, handle, '.', limits)
  const taken = new Set(listed.status === 'ok' ? listed.files.map(({ path }) => path.replace(/\.\w+$/, '')) : [])
  const saved: string[] = []
  for (const { extension, bytes } of figures) {
    let number = 1
    while (taken.has(`figure-${number}`)) number += 1
    taken.add(`figure-${number}`)
    const name = `figure-${number}.${extension}`
    const data = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer
    const written = await leases.use(handle, limits, CALL_MS, (signal) =>
      handle.sandbox.files.write(`${WORKSPACE}/${name}`, data, { useOctetStream: true, signal }),
    )
    if (written.status === 'ok') saved.push(name)
  }
  return saved
}
