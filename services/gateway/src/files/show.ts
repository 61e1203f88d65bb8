import { Fault, type FileReference } from '@tollgate/contracts'
import type { FileStore } from '@tollgate/files'
import type { Part } from '../conversation/turn.ts'

/** What of files one request may show its model, and of that as text. More is for code alone. */
const MOST_SHOWN_BYTES = 32 * 1024 * 1024
const MOST_TEXT_BYTES = 1024 * 1024
/** Characters that stand for an image in an estimate of tokens, whatever its size in bytes. */
const IMAGE_CHARACTERS = 6_000

/** Where code runs that is given the files: in a sandbox of ours, in a container of the provider's, or nowhere. */
export type CodePlace = 'here' | 'provider' | undefined

/** What showing the files of one request has in common. */
export interface Showing {
  store: FileStore
  signal: AbortSignal
  code: CodePlace
  /** Undefined: all of them. */
  bytesLeft: number | undefined
  characters: number
}

const images: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const TEXT =
  /^(text\/.*|application\/(.*\+)?(json|xml|yaml|toml|sql|x-ndjson|javascript|x-sh|x-python)|image\/svg\+xml)$/

type Kind = 'image' | 'document' | 'text'

function kindOf(mediaType: string): Kind | undefined {
  if (images.has(mediaType)) return 'image'
  if (mediaType === 'application/pdf') return 'document'
  return TEXT.test(mediaType) ? 'text' : undefined
}

/**
 * A file as the model is shown it (FI-15), and where code finds it (FI-13). What comes out depends on the file and on
 * those named before it alone, so that a longer conversation begins with the same bytes.
 */
export async function showFile(file: FileReference, name: string, hidden: boolean, showing: Showing): Promise<Part[]> {
  const shown = hidden ? undefined : await contentOf(file, showing)
  const known = JSON.stringify(name)
  const place =
    showing.code === 'provider'
      ? `among the input files of your code execution tool as ${known}`
      : `in the working directory of code_execution as ${known}`
  if (shown === undefined) {
    return [text(`[The file ${describe(file)} is ${place}; its content is not shown.]`)]
  }
  return showing.code ? [shown, text(`[The file ${describe(file)} is also ${place}.]`)] : [shown]
}

/** Undefined: it cannot be shown, but code can have it. */
async function contentOf(file: FileReference, showing: Showing): Promise<Part | undefined> {
  const kind = kindOf(file.mediaType)
  const left = showing.bytesLeft ?? MOST_SHOWN_BYTES
  const most = kind === 'text' ? Math.min(left, MOST_TEXT_BYTES) : left
  if (kind === undefined) return unshown(file, showing, 'is of a type that the model cannot be shown')
  if (file.bytes > most) return unshown(file, showing, 'is too large to be shown to the model')
  const bytes = await readFile(file, showing)
  const part = partOf(kind, file, bytes)
  if (part === undefined) return unshown(file, showing, 'is not the text that its type says')
  showing.bytesLeft = left - bytes.length
  showing.characters += kind === 'image' ? IMAGE_CHARACTERS : bytes.length
  return part
}

function unshown(file: FileReference, { code }: Showing, why: string): undefined {
  if (code) return undefined
  throw new Fault('invalid_request', `The file '${file.id}', ${describe(file)}, ${why}`)
}

async function readFile(file: FileReference, { store, signal }: Showing): Promise<Buffer> {
  const stored = await store.get(file.id, { signal })
  if (!stored) throw new Fault('not_found', `File '${file.id}' not found`)
  const pieces: Uint8Array[] = []
  for await (const piece of stored.content) pieces.push(piece)
  return Buffer.concat(pieces)
}

function partOf(kind: Kind, { name, mediaType }: FileReference, bytes: Buffer): Part | undefined {
  switch (kind) {
    case 'image':
      return { type: 'image', url: dataUrl(mediaType, bytes), mediaType }
    case 'document': {
      // the form in which every wire knows a file with its bytes
      const raw = { type: 'file', file: { filename: name, file_data: dataUrl(mediaType, bytes) } }
      return { type: 'other', dialect: 'chat', kind: 'file', raw }
    }
    case 'text': {
      const words = utf8(bytes)
      return words === undefined ? undefined : text(`File ${JSON.stringify(name)}:\n\n${words}`)
    }
    default:
      return kind satisfies never
  }
}

function utf8(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const dataUrl = (mediaType: string, bytes: Buffer): string => `data:${mediaType};base64,${bytes.toString('base64')}`
const describe = ({ name, mediaType, bytes }: FileReference): string =>
  `${JSON.stringify(name)} (${mediaType}, ${bytes} bytes)`
const text = (words: string): Part => ({ type: 'text', text: words })
