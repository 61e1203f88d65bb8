import type { Readable } from 'node:stream'
import { Busboy } from '@fastify/busboy'
import { Fault } from '@tollgate/contracts'
import { Invalid } from '../validation.ts'

export interface ReceivedFile {
  content: Readable
  filename: string
  mediaType: string
}

export interface ReceivedForm<T> {
  fields: Record<string, string>
  stored: T
}

const limits = { files: 1, fields: 16, parts: 24, fieldSize: 4_096, headerPairs: 32 }

/**
 * Reads a form whose part `file` goes to `store` as it comes; fields may stand before it and behind it. Fails as soon as
 * storing does, and when the client leaves; `store` then sees its stream end with an error.
 */
export function receiveForm<T>(
  body: Readable,
  contentType: string,
  store: (file: ReceivedFile) => Promise<T>,
): Promise<ReceivedForm<T>> {
  const form = openForm(contentType)
  const fields: Record<string, string> = {}
  let storing: Promise<T> | undefined
  let breakOff = (_why: Error) => {}

  return new Promise((resolve, reject) => {
    const fail = (why: Error) => {
      breakOff(why)
      reject(why)
    }
    form.on('field', (name, value) => {
      fields[name] = value
    })
    form.on('file', (name, content, filename, _encoding, mediaType) => {
      if (name !== 'file' || storing) return void content.resume()
      breakOff = (why) => void content.destroy(why)
      storing = store({ content, filename: filename ?? '', mediaType })
      storing.catch(fail)
    })
    form.once('error', (cause) => fail(malformed('is not a complete form', cause)))
    body.once('close', () => {
      if (!body.readableEnded) fail(new Fault('cancelled', 'the client left'))
    })
    form.once('finish', () => {
      if (!storing) return fail(malformed('must have a part named file'))
      storing.then((stored) => resolve({ fields, stored }), fail)
    })
    body.pipe(form)
  })
}

function openForm(contentType: string) {
  try {
    return new Busboy({ headers: { 'content-type': contentType }, limits })
  } catch (cause) {
    throw malformed('is not multipart/form-data with a boundary', cause)
  }
}

function malformed(msg: string, cause?: unknown): Invalid {
  const invalid = new Invalid([{ loc: ['body'], msg, type: 'multipart' }])
  invalid.cause = cause
  return invalid
}

const READ_ON_MS = 10_000

/** A client hears why it was refused only after it has sent everything; one that sends much more is cut off. */
export async function readOn(body: Readable, mostBytes: number): Promise<void> {
  if (body.readableEnded || body.destroyed) return
  const late = setTimeout(() => body.destroy(), READ_ON_MS)
  let rest = mostBytes
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
