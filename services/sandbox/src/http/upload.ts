import { randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import { Busboy } from '@fastify/busboy'
import type { FastifyRequest } from 'fastify'
import { PIECE_BYTES, type Sandbox } from '../drivers/driver.ts'
import { HttpRefusal } from './refusal.ts'

interface Written {
  path: string
  size_bytes: number
}

/**
 * Writes the part `file` into the session as it comes, and gives it its name at the end: a `path` may follow the file,
 * and a broken or oversized upload leaves nothing (CP-20).
 */
export async function receiveUpload(request: FastifyRequest, sandbox: Sandbox, maxBytes: number): Promise<Written> {
  const type = request.headers['content-type'] ?? ''
  if (!/^multipart\/form-data\b/i.test(type)) throw new HttpRefusal(422, 'must be multipart/form-data')
  const body = request.body as Readable
  const upload = randomBytes(12).toString('hex')
  try {
    const { path, size } = await receive(body, type, (file) => store(file, sandbox, upload, maxBytes))
    if (path.length > MAX_PATH) throw new HttpRefusal(422, 'the path is too long')
    return { path: await sandbox.commit(upload, path, { exclusive: false }), size_bytes: size }
  } catch (thrown) {
    // with a session that has ended it is gone already
    await sandbox.discard(upload).catch(() => {})
    await readToEnd(body, maxBytes)
    throw thrown
  }
}

/** As of every other path: a message to a session has room for it. */
const MAX_PATH = 4_096

/** Reads the form; `store` is given the file's stream and says its size. */
function receive(
  body: Readable,
  type: string,
  store: (file: Readable) => Promise<number>,
): Promise<{ path: string; size: number }> {
  const form = openForm(type)
  let path: string | undefined
  let name = ''
  let storing: Promise<number> | undefined
  let broken = () => {}
  form.on('field', (field, value) => {
    if (field === 'path' && value !== '') path = value
  })
  return new Promise((resolve, reject) => {
    const malformed = (thrown: unknown) => reject(new HttpRefusal(422, 'not a complete form', { cause: thrown }))
    form.on('file', (field, file, filename) => {
      if (field !== 'file' || storing) {
        file.resume()
        return
      }
      name = filename
      storing = store(file)
      storing.catch(reject)
      // what ends the form ends the file, and with it the wait for more of it
      broken = () => file.destroy()
    })
    form.once('error', malformed)
    body.once('error', malformed).once('close', () => {
      if (body.readableEnded) return
      malformed('the client left')
      broken()
    })
    form.once('finish', () => {
      if (!storing) return reject(new HttpRefusal(422, 'a part named file is required'))
      storing.then((size) => resolve({ size, path: path ?? (name || 'upload') }), reject)
    })
    body.pipe(form)
  })
}

function openForm(type: string) {
  try {
    return new Busboy({
      headers: { 'content-type': type },
      limits: { files: 1, fields: 8, parts: 16, fieldSize: 8_192, headerPairs: 32 },
    })
  } catch (thrown) {
    throw new HttpRefusal(422, 'not a form', { cause: thrown })
  }
}

/** Pieces sent into the session before it has said that it wrote those before them. */
const AHEAD = 2

async function store(file: Readable, sandbox: Sandbox, upload: string, maxBytes: number): Promise<number> {
  let held: Buffer[] = []
  let size = 0
  let sent = 0
  const writing: Promise<void>[] = []
  const flush = async () => {
    const write = sandbox.write(upload, sent, held)
    write.catch(() => {}) // heard of when its turn comes; until then others may fail first
    writing.push(write)
    held = []
    sent = size
    if (writing.length >= AHEAD) await writing.shift()
  }
  for await (const chunk of file as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) throw new HttpRefusal(413, 'the file is larger than the sandbox takes')
    held.push(chunk)
    if (size - sent >= WRITE_BYTES) await flush()
  }
  if (size > sent || size === 0) await flush()
  await Promise.all(writing)
  return size
}

/** A chunk of a form is far smaller than what this leaves of a piece. */
const WRITE_BYTES = PIECE_BYTES / 2

const READ_ON_MS = 10_000

/** A refused client hears why only after it has sent everything; one that never ends is cut off. */
async function readToEnd(body: Readable, maxBytes: number): Promise<void> {
  if (body.readableEnded || body.destroyed) return
  const late = setTimeout(() => body.destroy(), READ_ON_MS)
  let rest = 2 * maxBytes
  await new Promise<void>((resolve) => {
    body.unpipe().once('end', resolve).once('close', resolve)
    body.on('data', (chunk: Buffer) => {
      rest -= chunk.length
      if (rest < 0) body.destroy()
    })
    body.resume()
  })
  clearTimeout(late)
}
