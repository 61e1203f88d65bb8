import { createHash, randomBytes } from 'node:crypto'
import { Fault } from '@tollgate/contracts'
import { headers } from 'nats'
import { cancelled } from './faults.ts'
import type { Names } from './names.ts'
import type { Link } from './nats-link.ts'
import { overtaken, storeFault, unlessMissing } from './nats-object-faults.ts'
import { decodeName, digestOf, encodeName, type ObjectInfo, objectInfo } from './nats-object-info.ts'
import { pieces } from './nats-object-pieces.ts'
import { readObject } from './nats-object-read.ts'
import type { Streams } from './nats-streams.ts'
import type { ObjectFacts, ObjectPut, Objects, ObjectsOptions } from './objects.ts'

const PIECE_BYTES = 128 * 1024
/** Pieces sent and not yet acknowledged: what a slow server makes a writer keep in memory. */
const UNDER_WAY = 8
const ANSWER_MS = 10_000
/** Writers of one name that overtake each other; a file is written once, so that even one is rare. */
const MOST_OVERTAKEN = 64

interface Needs {
  link: Link
  names: Names
  streams: Streams
}

/**
 * The NATS object store, in its own layout, so that the `nats object` command can look into it. The client library's
 * reader keeps whatever a slow consumer has not taken in memory, and its writer sends faster than pieces are stored; here
 * a piece is read when the one before is taken, and few are under way.
 */
export async function openObjects({ link, names, streams }: Needs, options: ObjectsOptions): Promise<Objects> {
  const bucket = names.bucket(options.bucket)
  const place = streams.bucket(bucket, options.maxBytes)
  const { stream } = place
  const js = link.connection.jetstream({ timeout: ANSWER_MS })
  const manager = await link.connection.jetstreamManager({ checkAPI: false, timeout: ANSWER_MS })
  const metaOf = (name: string) => `$O.${bucket}.M.${encodeName(checked(name))}`
  const piecesOf = (nuid: string) => `$O.${bucket}.C.${nuid}`
  const purge = (subject: string) => manager.streams.purge(stream, { filter: subject })
  await place.ready()

  /** Asked of the stream's leader, so that what was just written elsewhere is seen. */
  async function find(name: string): Promise<{ info: ObjectInfo; revision: number } | undefined> {
    const stored = await manager.streams.getMessage(stream, { last_by_subj: metaOf(name) }).catch(unlessMissing)
    if (!stored) return undefined
    const info = objectInfo.parse(JSON.parse(Buffer.from(stored.data).toString('utf8')))
    return info.deleted ? undefined : { info, revision: stored.seq }
  }

  async function put(name: string, content: AsyncIterable<Uint8Array>, limits: ObjectPut): Promise<ObjectFacts> {
    // the writer's start is in it, so that what it leaves behind can be told from what is being written
    const nuid = `${checked(name)}.${Date.now().toString(36)}.${randomBytes(9).toString('hex')}`
    const underWay = new Set<Promise<void>>()
    try {
      const sent = await send(piecesOf(nuid), content, limits, underWay)
      const info = { name, bucket, nuid, ...sent, mtime: new Date().toISOString(), deleted: false, options: chunked }
      await publish(info)
      return factsOf(info)
    } catch (thrown) {
      await Promise.allSettled(underWay)
      // what cannot be removed now is removed by `tidy`
      await purge(piecesOf(nuid)).catch(() => undefined)
      throw limits.signal?.aborted ? cancelled() : thrown
    }
  }

  async function send(
    subject: string,
    content: AsyncIterable<Uint8Array>,
    { maxBytes, signal }: ObjectPut,
    underWay: Set<Promise<void>>,
  ) {
    const hash = createHash('sha256')
    let [size, chunks, first] = [0, 0, 0]
    for await (const piece of pieces(content, PIECE_BYTES, signal)) {
      size += piece.byteLength
      if (size > maxBytes) throw new Fault('too_large', `the file is larger than ${maxBytes} bytes`)
      hash.update(piece)
      chunks += 1
      const stored = js.publish(subject, piece, { timeout: ANSWER_MS }).then(({ seq }) => {
        first = first === 0 ? seq : Math.min(first, seq)
        underWay.delete(stored)
      })
      underWay.add(stored)
      // its failure is heard where it is waited for
      stored.catch(() => undefined)
      if (underWay.size >= UNDER_WAY) await Promise.race(underWay)
    }
    await Promise.all(underWay)
    if (signal?.aborted) throw cancelled()
    return { size, chunks, digest: digestOf(hash), metadata: { first: String(first) } }
  }

  /** Gives the name to what was sent, and frees exactly what had it before. */
  async function publish(info: ObjectInfo): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const before = await find(info.name)
      const options = { timeout: ANSWER_MS, headers: rollup(), expect: { lastSubjectSequence: before?.revision ?? 0 } }
      const written = await js.publish(metaOf(info.name), JSON.stringify(info), options).catch((thrown: unknown) => {
        if (overtaken(thrown) && tries < MOST_OVERTAKEN) return undefined
        throw thrown
      })
      if (!written) continue
      if (before) await purge(piecesOf(before.info.nuid))
      return
    }
  }

  async function subjects(filter: string): Promise<string[]> {
    const { state } = await manager.streams.info(stream, { subjects_filter: filter })
    return Object.keys(state.subjects ?? {})
  }

  /** Every call first sees that the bucket is there, and fails with nothing but Faults. */
  const work =
    <A extends unknown[], R>(task: (...given: A) => Promise<R>) =>
    async (...given: A): Promise<R> => {
      try {
        await place.ready().catch((cause: unknown) => {
          throw new Fault('unavailable', 'files cannot be reached just now', { cause })
        })
        return await task(...given)
      } catch (thrown) {
        throw storeFault(thrown)
      }
    }

  return {
    put: work(put),
    get: work(async (name, { signal } = {}) => {
      const { info } = (await find(name)) ?? {}
      if (!info) return undefined
      return {
        ...factsOf(info),
        content: readObject(
          { connection: link.connection, manager, stream, subject: piecesOf(info.nuid) },
          info,
          signal,
        ),
      }
    }),
    stat: work(async (name) => {
      const found = await find(name)
      return found && factsOf(found.info)
    }),
    delete: work(async (name) => {
      const found = await find(name)
      if (!found) return false
      const { purged } = await purge(metaOf(name))
      await purge(piecesOf(found.info.nuid))
      return purged > 0
    }),
    names: work(async () => (await subjects(`$O.${bucket}.M.*`)).map((subject) => decodeName(lastToken(subject)))),
    tidy: work(async (olderThanMs) => {
      const oldest = Date.now() - olderThanMs
      const before = `$O.${bucket}.C.`
      let removed = 0
      for (const subject of await subjects(`${before}>`)) {
        const nuid = subject.slice(before.length)
        const [, name, began = ''] = OWN_PIECES.exec(nuid) ?? []
        if (name === undefined || Number.parseInt(began, 36) > oldest) continue
        if ((await find(name))?.info.nuid === nuid) continue
        await purge(subject)
        removed += 1
      }
      return removed
    }),
  }
}

const chunked = { max_chunk_size: PIECE_BYTES }
const NAME = /^[\w-]{1,128}$/
const OWN_PIECES = /^([\w-]{1,128})\.([0-9a-z]+)\.[0-9a-f]+$/

function checked(name: string): string {
  if (!NAME.test(name)) throw new Fault('invalid_request', 'not a file id')
  return name
}

const factsOf = ({ size, mtime }: ObjectInfo): ObjectFacts => ({ bytes: size, storedAt: new Date(mtime) })
const lastToken = (subject: string): string => subject.slice(subject.lastIndexOf('.') + 1)

/** The name's former entries go with this one's coming. */
function rollup() {
  const said = headers()
  said.set('Nats-Rollup', 'sub')
  return said
}
