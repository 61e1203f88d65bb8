import { randomBytes } from 'node:crypto'

/** A form with a file in it, ready to be sent (RFC 7578). */
export interface Form {
  contentType: string
  contentLength: number
  content: AsyncIterable<Uint8Array>
}

export interface FormFile {
  name: string
  mediaType: string
  bytes: number
  content: AsyncIterable<Uint8Array>
}

/** The file is the part `file`, and comes last: what is to be done with it is known before its first byte. */
export function formOf(fields: Readonly<Record<string, string>>, file: FormFile): Form {
  const boundary = `tollgate-${randomBytes(16).toString('hex')}`
  const part = (disposition: string, ...more: string[]) =>
    [`--${boundary}`, `content-disposition: form-data; ${disposition}`, ...more, '', ''].join('\r\n')
  const said = Object.entries(fields).map(([name, value]) => `${part(`name="${quoted(name)}"`)}${value}\r\n`)
  const named = part(`name="file"; filename="${quoted(file.name)}"`, `content-type: ${file.mediaType}`)
  const before = Buffer.from(said.join('') + named)
  const after = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    contentLength: before.length + file.bytes + after.length,
    content: inOrder(before, file.content, after),
  }
}

async function* inOrder(before: Uint8Array, content: AsyncIterable<Uint8Array>, after: Uint8Array) {
  yield before
  yield* content
  yield after
}

/** What could end the quoted text, in the form that browsers send it. */
const quoted = (text: string): string => text.replace(/["\r\n]/g, (character) => encodeURIComponent(character))
