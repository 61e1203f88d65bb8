import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { type Around, openCalls } from './calls.ts'
import type { Begin, Channel, Question } from './channel.ts'
import { FileRefused, type Reading, type Sandbox, SandboxLost } from './driver.ts'
import type { Line } from './line.ts'

const count = z.int().nonnegative()
const fileAnswer = z.object({ status: z.int(), reason: z.string().optional() })
const filePart = z.object({ part: z.literal('file'), size: count, identity: z.string().max(100) })
const fileRead = z.object({ whole: z.literal(true) })
const committed = z.object({ path: z.string() })
const listing = z.array(z.object({ path: z.string(), size_bytes: count, modified_at: z.number() }))
const names = z.array(z.string())

const FILE_MS = 30_000

export function openSandbox(channel: Channel, line: Line, end: () => void, around: Around): Sandbox {
  const askFiles = async (header: object, more: Omit<Question, 'timeoutMs'> = {}) => {
    const answer = await channel.ask(header, { timeoutMs: FILE_MS, ...more })
    const { status, reason = 'refused' } = fileAnswer.parse(answer.header)
    if (status !== 200) throw new FileRefused(status, reason)
    return answer
  }

  return {
    ended: channel.closed,
    end,

    run: openCalls(channel, line, around),

    async list(path) {
      return listing.parse(JSON.parse((await askFiles({ op: 'list', path })).body.toString()))
    },
    async view(path, length) {
      let size: number | undefined
      const data: Buffer[] = []
      const reading: Reading = {
        begin: (file) => {
          size = file.size
        },
        data: (bytes) => void data.push(Buffer.from(bytes)),
      }
      const piece = pieceOf(0, length, reading)
      const { header, body } = await askFiles({ op: 'view', path, length }, piece)
      if (size === undefined) return { names: names.parse(JSON.parse(body.toString())) }
      checkWhole(header)
      return { data: Buffer.concat(data), size }
    },
    async read(path, offset, length, reading) {
      const piece = pieceOf(offset, length, reading)
      const { header } = await askFiles({ op: 'read', path, offset, length }, piece)
      if (!piece.begun()) {
        channel.close()
        throw new SandboxLost('the session does not answer what it was asked')
      }
      checkWhole(header)
    },
    async write(upload, offset, data) {
      await askFiles({ op: 'write', upload, offset }, { body: data })
    },
    async commit(upload, path, { exclusive }) {
      return committed.parse((await askFiles({ op: 'commit', upload, path, exclusive })).header).path
    },
    async save(path, data, { exclusive }) {
      const upload = randomUUID().replaceAll('-', '')
      return committed.parse((await askFiles({ op: 'save', upload, path, exclusive }, { body: [data] })).header).path
    },
    async discard(upload) {
      await askFiles({ op: 'discard', upload })
    },
  }
}

/** What is not the one piece that was asked for ends the session: how much comes is known beforehand. */
function pieceOf(offset: number, length: number, { begin, data }: Reading) {
  let begun = false
  const onBegin: Begin = (header, bytes) => {
    const { size, identity } = filePart.parse(header)
    if (begun || bytes !== Math.max(0, Math.min(length, size - offset))) throw new Error('not what was asked for')
    begun = true
    begin({ size, identity })
    return data
  }
  return { onBegin, begun: () => begun }
}

function checkWhole(header: unknown): void {
  if (!fileRead.safeParse(header).success) throw new FileRefused(409, 'the file changed while it was read')
}
