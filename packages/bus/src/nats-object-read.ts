import { createHash } from 'node:crypto'
import { Fault } from '@tollgate/contracts'
import type { JetStreamManager, NatsConnection } from 'nats'
import { cancelled } from './faults.ts'
import { storeFault, unlessMissing } from './nats-object-faults.ts'
import { digestOf, type ObjectInfo } from './nats-object-info.ts'

const ANSWER_MS = 10_000

interface Source {
  connection: NatsConnection
  manager: JetStreamManager
  stream: string
  /** Of the object's pieces. */
  subject: string
}

/**
 * An object's content, one piece for each time it is asked: a reader that is slow costs nothing. Any replica may be asked
 * for a piece; one that does not have it yet is no reason to fail, so the leader is asked then.
 */
export async function* readObject(
  source: Source,
  info: ObjectInfo,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  let seq = Number(info.metadata.first)
  let bytes = 0
  for (let chunk = 0; chunk < info.chunks; chunk += 1) {
    if (signal?.aborted) throw cancelled()
    const piece = await pieceAfter(source, seq)
    hash.update(piece.data)
    bytes += piece.data.byteLength
    seq = piece.seq + 1
    yield piece.data
  }
  if (bytes !== info.size || digestOf(hash) !== info.digest) throw gone(new Error('another size or digest'))
}

interface Piece {
  seq: number
  data: Uint8Array
}

async function pieceAfter(source: Source, from: number): Promise<Piece> {
  try {
    const piece = (await direct(source, from)) ?? (await fromLeader(source, from))
    if (piece) return piece
  } catch (thrown) {
    throw storeFault(thrown)
  }
  throw gone(new Error(`no piece after ${from}`))
}

/** JetStream's direct get, which the client library has no public call for; undefined when this replica has none. */
async function direct({ connection, stream, subject }: Source, from: number): Promise<Piece | undefined> {
  const wanted = JSON.stringify({ seq: from, next_by_subj: subject })
  const answer = await connection.request(`$JS.API.DIRECT.GET.${stream}`, wanted, { timeout: ANSWER_MS })
  const seq = Number(answer.headers?.get('Nats-Sequence'))
  return seq > 0 ? { seq, data: answer.data } : undefined
}

function fromLeader({ manager, stream, subject }: Source, from: number): Promise<Piece | undefined> {
  const wanted = { seq: from, next_by_subj: subject }
  return manager.streams.getMessage(stream, wanted).catch(unlessMissing)
}

const gone = (cause: Error) => new Fault('unavailable', 'the file was replaced or deleted while it was read', { cause })
