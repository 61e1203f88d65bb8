import type { ResponseHead } from '@tollgate/http'
import { mediaType, readingOf, sniffBytes } from './extract/content-type.ts'

/** `documents`: whatever text can be made of (F-17). `text`: textual types (WM-36). */
export type Reads = 'documents' | 'text'

const textual = /^(?:text\/[^/]+|application\/(?:xhtml\+xml|json|xml)|[^/]+\/[^/]+\+(?:json|xml))$/

/** Judges an answer by its type, before anything of its body is read (WM-37). Nothing declared: its bytes will tell. */
export function isReadable(head: ResponseHead, reads: Reads): boolean {
  const declared = head.header('content-type')
  const type = mediaType(declared)
  return reads === 'text' ? type === undefined || textual.test(type) : readingOf(declared) !== undefined
}

/** Whether a body is not the text that its type, or the lack of one, let hope for (WM-38). */
export const isDisguised = (bytes: Uint8Array, reads: Reads): boolean =>
  reads === 'text' && (sniffBytes(bytes) !== undefined || isWebp(bytes))

const isWebp = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(12, bytes.length))
    .toString('latin1')
    .match(/^RIFF.{4}WEBP$/s) !== null

/** What a server said of a body that is not taken. */
export function declaredOf(head: ResponseHead): { contentType?: string; bytes?: number } {
  const type = mediaType(head.header('content-type'))
  const length = head.header('content-length')
  const bytes = length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : undefined
  return { ...(type === undefined ? {} : { contentType: type }), ...(bytes === undefined ? {} : { bytes }) }
}
