import { Fault, type FileReference } from '@tollgate/contracts'
import { type FileStore, workspaceNames } from '@tollgate/files'
import { isObject } from '../conversation/json.ts'
import type { Json, JsonObject, Message, Part, Turn } from '../conversation/turn.ts'
import { filledMessage } from '../dialects/messages/files.ts'
import type { FileClaims } from './claims.ts'
import { declaredFileIds } from './declared.ts'
import { type FileRows, type FileView, referenceOf } from './rows.ts'
import { type CodePlace, type Showing, showFile } from './show.ts'

/** Files that one request may refer to; each is sent to its sandbox. */
const MOST_FILES = 100

/** Where files are, for whoever may have them. */
export interface Files {
  store: FileStore
  rows: FileRows
  /** For bytes whose id somebody else chose, so that two answers may name one file at once. */
  claims: FileClaims
}

/** The files that a conversation refers to. */
export interface Attachments {
  /** Each once, in the order in which they are first named: what code is given (FI-12). */
  files: readonly FileReference[]
  /** The messages as a model is shown them, with the files' contents in place of our ids (FI-15). */
  show(messages: Message[], code: CodePlace): Promise<Shown>
}

export interface Shown {
  messages: Message[]
  /** What the contents add to the length of the request, as an estimate of its tokens sees it. */
  characters: number
}

const none: Attachments = { files: [], show: async (messages) => ({ messages, characters: 0 }) }

/** FI-17, FI-25: every file that is named is there and is the caller's, or the request is a 404. Each comes once. */
export async function findFiles(
  files: Pick<Files, 'rows'> | undefined,
  view: FileView,
  named: readonly string[],
): Promise<FileReference[]> {
  const ids = [...new Set(named)]
  if (ids.length > MOST_FILES) throw new Fault('invalid_request', `a request may name at most ${MOST_FILES} files`)
  // no file has another id, and no database takes every text
  const askable = ids.filter((id) => /^[\w-]{1,128}$/.test(id))
  const rows = new Map((await files?.rows.findAll(view, askable))?.map((row) => [row.id, row]))
  return ids.map((id) => {
    const row = rows.get(id)
    if (!row) throw new Fault('not_found', `File '${printable(id)}' not found`)
    return referenceOf(row)
  })
}

/** What a conversation refers to, found and ready to be shown. */
export async function findAttachments(
  files: Files | undefined,
  view: FileView,
  { messages, tools }: Pick<Turn, 'messages' | 'tools'>,
  signal: AbortSignal,
): Promise<Attachments> {
  const ids = messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'file' ? part.id : [])))
  const found = await findFiles(files, view, [...ids, ...tools.flatMap(declaredFileIds)])
  if (files === undefined || found.length === 0) return none
  const names = workspaceNames(found)
  const byId = new Map(found.map((file, at) => [file.id, { file, name: names[at] as string }]))

  return {
    files: found,
    async show(given, code) {
      const showing: Showing = { store: files.store, signal, code, bytesLeft: undefined, characters: 0 }
      const contents = new Map<string, Part[]>()
      for (const part of given.flatMap(({ parts }) => parts)) {
        if (part.type !== 'file' || contents.has(keyOf(part))) continue
        const attached = byId.get(part.id)
        if (!attached) throw new Error('a file is to be shown that was not looked up')
        const hidden = code !== undefined && part.forCode === true
        contents.set(keyOf(part), await showFile(attached.file, attached.name, hidden, showing))
      }
      const inPlace = (part: FilePart) => contents.get(keyOf(part)) ?? []
      return { messages: given.map((message) => filled(message, inPlace)), characters: showing.characters }
    },
  }
}

type FilePart = Part & { type: 'file' }
const keyOf = ({ id, forCode = false }: FilePart): string => `${forCode} ${id}`

/** Whatever does not name a file stays the very same object, and with it the bytes that are sent for it. */
function filled(message: Message, contentOf: (part: FilePart) => Part[]): Message {
  if (!message.parts.some(({ type }) => type === 'file')) return message
  const parts = message.parts.flatMap((part) => (part.type === 'file' ? contentOf(part) : [part]))
  const { role, raw } = message
  switch (raw?.dialect) {
    case 'chat':
      return { role, parts, raw: { ...raw, value: filledChat(raw.value, contentOf) } }
    case 'messages':
      return { role, parts, raw: { ...raw, value: filledMessage(raw.value, contentOf) } }
    default:
      // in a form that only another dialect reads, the message is written anew from its parts
      return { role, parts }
  }
}

function filledChat(value: JsonObject, contentOf: (part: FilePart) => Part[]): JsonObject {
  const { content } = value
  if (!Array.isArray(content)) return value
  return {
    ...value,
    content: content.flatMap((part): Json[] => {
      const id = chatFileId(part)
      return id === undefined ? [part] : contentOf({ type: 'file', id }).map(inChat)
    }),
  }
}

/** The id in a Chat content part of type `file`. */
export function chatFileId(part: unknown): string | undefined {
  if (!isObject(part as Json)) return undefined
  const { type, file } = part as JsonObject
  return type === 'file' && isObject(file) && typeof file.file_id === 'string' ? file.file_id : undefined
}

function inChat(part: Part): JsonObject {
  if (part.type === 'text') return { type: 'text', text: part.text }
  if (part.type === 'image') return { type: 'image_url', image_url: { url: part.url } }
  if (part.type === 'other' && isObject(part.raw)) return part.raw
  throw new Error(`a file is shown as '${part.type}', which Chat has no form for`)
}

/** An id comes from outside, so it is repeated in printable ASCII and not at length. */
const printable = (id: string): string => id.replace(/[^\x20-\x7e]/g, '').slice(0, 64)
