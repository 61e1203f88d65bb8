import { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Fault } from '@tollgate/contracts'
import { ABANDONED_MS, type FileStore, type StoredFile } from './store.ts'

/**
 * A file store in a folder, for one machine or a shared volume. Content is written beside the files, flushed, and
 * renamed into place; files lie in 256 folders by the hash of their id.
 */
export async function localFiles(folder: string): Promise<FileStore> {
  const incoming = join(folder, 'incoming')
  await mkdir(incoming, { recursive: true, mode: 0o700 })
  await removeAbandoned(incoming, ABANDONED_MS)
  const place = (id: string) => {
    if (!/^[\w-]{1,128}$/.test(id)) throw new Fault('invalid_request', 'not a file id')
    return join(folder, createHash('sha256').update(id).digest('hex').slice(0, 2), id)
  }

  return {
    async put(id, content, { maxBytes, signal }) {
      const target = place(id)
      const half = join(incoming, randomUUID())
      try {
        // flush: the bytes are on the disk before the name is
        const file = createWriteStream(half, { flags: 'wx', mode: 0o600, flush: true })
        await pipeline(content, atMost(maxBytes), file, signal ? { signal } : {})
        await mkdir(dirname(target), { recursive: true, mode: 0o700 })
        await rename(half, target)
      } catch (error) {
        await rm(half, { force: true })
        throw signal?.aborted ? new Fault('cancelled', 'the upload was given up', { cause: error }) : error
      }
      return describe(await stat(target))
    },
    async get(id, { signal } = {}) {
      const file = await unlessMissing(open(place(id), 'r'))
      if (!file) return undefined
      // the open file is what is described and read: one that is replaced or deleted meanwhile stays whole for its reader
      const described = describe(await file.stat())
      return { ...described, content: file.createReadStream(signal ? { signal } : {}) }
    },
    async stat(id) {
      const found = await unlessMissing(stat(place(id)))
      return found && describe(found)
    },
    async delete(id) {
      return (await unlessMissing(unlink(place(id)).then(() => true))) ?? false
    },
    async ids() {
      const shelves = (await readdir(folder)).filter((name) => /^[0-9a-f]{2}$/.test(name))
      const found: string[] = []
      for (const shelf of shelves) found.push(...(await readdir(join(folder, shelf))))
      return found
    },
    tidy: (olderThanMs) => removeAbandoned(incoming, olderThanMs),
  }
}

const describe = ({ size, mtime }: { size: number; mtime: Date }): StoredFile => ({ bytes: size, storedAt: mtime })

const atMost = (maxBytes: number) =>
  async function* (content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0
    for await (const chunk of content) {
      bytes += chunk.byteLength
      if (bytes > maxBytes) throw new Fault('too_large', `the file is larger than ${maxBytes} bytes`)
      yield chunk
    }
  }

async function removeAbandoned(incoming: string, olderThanMs: number): Promise<number> {
  let removed = 0
  for (const name of await readdir(incoming)) {
    const path = join(incoming, name)
    const found = await unlessMissing(stat(path))
    if (!found || Date.now() - found.mtimeMs <= olderThanMs) continue
    await rm(path, { force: true })
    removed += 1
  }
  return removed
}

/** A file that is not there is an answer; any other trouble with the disk is not. */
async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
