import { Fault, type FileReference } from '@tollgate/contracts'
import { type FileStore, mediaTypeOf, newFileId, SNIFFED_BYTES } from '@tollgate/files'
import { openDeadline } from '@tollgate/http'
import { MAX_FILES } from './limits.ts'
import type { CallLimits, Provider } from './provider.ts'
import { traced } from './traced.ts'

/** What a call made: `file` is absent when it is named but was not stored (FI-22). */
export interface ProducedFile {
  name: string
  file?: FileReference
}

export interface OutputBounds {
  files: number
  bytes: number
}

/** The workspace's own listing at one moment; undefined where a backend has none (CP-18). */
export type Snapshot = Map<string, string> | undefined

export async function takeSnapshot(provider: Provider, session: string, limits: CallLimits): Promise<Snapshot> {
  const listed = await traced('list', provider.name, () => provider.list(session, '.', limits))
  if (listed.status === 'failed') return undefined
  return new Map(listed.files.map(({ path, bytes, modifiedAt }) => [path, `${bytes}:${modifiedAt}`]))
}

/** FI-20: those the result names, and those the listing shows as new or changed since. */
export function producedNames(named: readonly string[], before?: Snapshot, after?: Snapshot): string[] {
  const changed = before && after ? [...after].filter(([path, state]) => before.get(path) !== state) : []
  return [...new Set([...named, ...changed.map(([path]) => path)])].slice(0, MAX_FILES)
}

interface StoreNeeds {
  provider: Provider
  store: FileStore
  bounds: OutputBounds
}

/** Of a call's time, kept for its answer: files that take longer do not cost the run. */
const ANSWER_MS = 2_000

/** Finds what a call made and stores it, one after the other, while its bounds and its time allow; the rest keep their names (FI-22). */
export async function collectProduced(
  { provider, store, bounds }: StoreNeeds,
  session: string,
  { named, before }: { named: readonly string[]; before: Snapshot },
  limits: CallLimits,
): Promise<ProducedFile[]> {
  const deadline = limits.deadline - ANSWER_MS
  const time = openDeadline(deadline, limits.signal)
  const within = { signal: time.signal, deadline }
  const inTime = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return time.expired ? undefined : await work()
    } catch (thrown) {
      limits.signal.throwIfAborted()
      if (time.expired) return undefined
      throw thrown
    }
  }
  const produced: ProducedFile[] = []
  let room = bounds.bytes
  try {
    const after = before && (await inTime(() => takeSnapshot(provider, session, within)))
    for (const [index, name] of producedNames(named, before, after).entries()) {
      const file =
        index < bounds.files ? await inTime(() => storeOne(provider, store, session, name, room, within)) : undefined
      if (file?.bytes === 0) {
        await store.delete(file.id)
        continue
      }
      room -= file?.bytes ?? 0
      produced.push(file ? { name, file } : { name })
    }
    return produced
  } finally {
    time.end()
  }
}

async function storeOne(
  provider: Provider,
  store: FileStore,
  session: string,
  name: string,
  maxBytes: number,
  limits: CallLimits,
): Promise<FileReference | undefined> {
  const got = await traced('get', provider.name, () => provider.get(session, name, limits))
  if (got.status === 'failed') return undefined
  const id = newFileId()
  const seen = beginningOf(got.content)
  try {
    const { bytes } = await store.put(id, seen.content, { maxBytes, signal: limits.signal })
    return { id, name, mediaType: mediaTypeOf(name, seen.bytes()), bytes }
  } catch (thrown) {
    limits.signal.throwIfAborted()
    // too large for what is left, or a backend that broke off: the call stands without it
    if (thrown instanceof Fault && thrown.failure !== 'too_large') throw thrown
    return undefined
  } finally {
    got.content.destroy()
  }
}

/** The content as it was, with its first bytes remembered: they tell the media type where a name does not (FI-26). */
function beginningOf(content: AsyncIterable<Uint8Array>): { content: AsyncIterable<Uint8Array>; bytes(): Uint8Array } {
  const first = new Uint8Array(SNIFFED_BYTES)
  let length = 0
  async function* watched() {
    for await (const chunk of content) {
      const taken = chunk.subarray(0, SNIFFED_BYTES - length)
      first.set(taken, length)
      length += taken.length
      yield chunk
    }
  }
  return { content: watched(), bytes: () => first.subarray(0, length) }
}
