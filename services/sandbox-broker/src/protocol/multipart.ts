import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import type { SeedFile } from '../provider.ts'

/** One file and its destination as multipart/form-data (RFC 7578), streamed; the length is known, so it is said (CP-20). */
export function multipartUpload({ path, mediaType, bytes, content }: SeedFile): {
  headers: Record<string, string>
  body: Readable
} {
  const boundary = `tollgate-${randomBytes(16).toString('hex')}`
  const head = Buffer.from(
    `--${boundary}\r\ncontent-disposition: form-data; name="path"\r\n\r\n${path}\r\n` +
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${quoted(path.split('/').at(-1) ?? path)}"\r\n` +
      `content-type: ${mediaType}\r\n\r\n`,
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(head.length + bytes + tail.length),
    },
    body: Readable.from(concatenated(head, content, tail), { objectMode: false }),
  }
}

/** As browsers write it: what would end the quoted string or the line is percent-encoded. */
const quoted = (name: string): string =>
  name.replace(/["\r\n]/g, (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`)

async function* concatenated(head: Buffer, content: Readable, tail: Buffer): AsyncGenerator<Uint8Array> {
  yield head
  yield* content as AsyncIterable<Uint8Array>
  yield tail
}
