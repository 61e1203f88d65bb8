import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Channel } from './channel.ts'
import { type CallResult, FileRefused, type Sandbox } from './driver.ts'

const count = z.int().nonnegative()
const runAnswer = z.object({
  code: z.int(),
  stdout_bytes: count,
  stdout_dropped: count,
  stderr_dropped: count,
  files_bytes: count,
  ending: z.enum(['time', 'memory', 'processes', 'disk', 'cancelled']).nullable(),
  lost: z.string().nullable(),
})
const outputPart = z.object({ part: z.enum(['stdout', 'stderr']) })
const fileAnswer = z.object({ status: z.int(), reason: z.string().optional() })
const readAnswer = z.object({ size: count, identity: z.string() })
const committed = z.object({ path: z.string() })
const listing = z.array(z.object({ path: z.string(), size_bytes: count, modified_at: z.number() }))
const names = z.array(z.string())

/** Beyond a call's own time: the grace to interrupt it, ending it, and a machine that is busy. */
const OVERTIME_MS = 10_000
const FILE_MS = 30_000

export function openSandbox(channel: Channel, end: () => void): Sandbox {
  const askFiles = async (header: object, body?: Buffer[]) => {
    const answer = await channel.ask(header, { timeoutMs: FILE_MS, ...(body ? { body } : {}) })
    const { status, reason = 'refused' } = fileAnswer.parse(answer.header)
    if (status !== 200) throw new FileRefused(status, reason)
    return answer
  }

  return {
    ended: channel.closed,
    end,

    async run({ kind, text, timeoutSeconds, onOutput }, signal) {
      signal.throwIfAborted()
      const asking = channel.ask(
        { op: kind, timeout: timeoutSeconds, stream: onOutput !== undefined },
        {
          body: [Buffer.from(text)],
          timeoutMs: timeoutSeconds * 1_000 + OVERTIME_MS,
          ...(onOutput ? { onPart: ({ header, body }) => onOutput(outputPart.parse(header).part, body) } : {}),
        },
      )
      const of = channel.latest()
      const cancel = () => channel.tell({ op: 'cancel', id: 0, of })
      signal.addEventListener('abort', cancel, { once: true })
      const { header, body } = await asking.finally(() => signal.removeEventListener('abort', cancel))
      return resultOf(runAnswer.parse(header), body)
    },

    async list(path) {
      return listing.parse(JSON.parse((await askFiles({ op: 'list', path })).body.toString()))
    },
    async tree(path) {
      return names.nullable().parse(JSON.parse((await askFiles({ op: 'tree', path })).body.toString())) ?? undefined
    },
    async read(path, offset, length) {
      const { header, pieces } = await askFiles({ op: 'read', path, offset, length })
      const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
      return { ...readAnswer.parse(header), data: pieces, bytes }
    },
    async write(upload, offset, data) {
      await askFiles({ op: 'write', upload, offset }, data)
    },
    async commit(upload, path, { exclusive }) {
      return committed.parse((await askFiles({ op: 'commit', upload, path, exclusive })).header).path
    },
    async save(path, data, { exclusive }) {
      const upload = randomUUID().replaceAll('-', '')
      return committed.parse((await askFiles({ op: 'save', upload, path, exclusive }, [data])).header).path
    },
    async discard(upload) {
      await askFiles({ op: 'discard', upload })
    },
  }
}

function resultOf(header: z.output<typeof runAnswer>, body: Buffer): CallResult {
  const files = body.length - header.files_bytes
  const text = body.toString('utf8', files)
  return {
    stdout: { bytes: body.subarray(0, header.stdout_bytes), dropped: header.stdout_dropped },
    stderr: { bytes: body.subarray(header.stdout_bytes, files), dropped: header.stderr_dropped },
    exitCode: header.code,
    ending: header.ending ?? undefined,
    lost: header.lost ?? undefined,
    files: text === '' ? [] : text.split('\0'),
  }
}
