import type { IncomingHttpHeaders } from 'node:http'
import type { Delivery, FakeJson, RawAnswer } from './model-script.ts'

export interface FakeFile {
  id: string
  name: string
  mediaType: string
  content: Buffer
  /** Of a file that lies in a container, the container; of one that a client put there, the fields of its form. */
  container?: string
  fields: Record<string, string>
  byClient: boolean
}

/** `byClient`: it came into its container by another way than this stand-in. */
interface MadeFile {
  id: string
  name: string
  content: string | Buffer
  mediaType?: string
  container?: string
  byClient?: boolean
}

/** A call of a files API. */
export interface FilesCall {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
}

type FilesAnswer = RawAnswer & Delivery

/** What a vendor keeps of files: what clients put there, and what its code made. */
export interface FakeFiles {
  /** Every file that a client put there, whether or not it was deleted since. */
  put: FakeFile[]
  deleted: string[]
  /** A file that code made, as the vendor's own sandbox leaves it. */
  make(file: MadeFile): void
  /** `METHOD path` of every call. */
  asked: string[]
  /** Answers the next calls that match instead of the vendor, once each; without an answer, the vendor's own comes late. */
  instead: { on: RegExp; answer?: FilesAnswer; delayMs?: number }[]
  /** Why calls were refused. */
  refusals: string[]
  /** A file that is there. */
  find(id: string): FakeFile | undefined
  all(): FakeFile[]
  containers: Set<string>
}

export interface SentForm {
  fields: Record<string, string>
  file: { name: string; mediaType: string; content: Buffer } | undefined
}

export function fakeFiles() {
  const there = new Map<string, FakeFile>()
  const files: FakeFiles = {
    put: [],
    deleted: [],
    asked: [],
    instead: [],
    refusals: [],
    containers: new Set(),
    find: (id) => there.get(id),
    all: () => Array.from(there.values()),
    make({ id, name, content, mediaType = 'application/octet-stream', container, byClient = false }) {
      if (container !== undefined) files.containers.add(container)
      const made = { id, name, mediaType, content: Buffer.from(content), fields: {}, byClient }
      there.set(id, { ...made, ...(container !== undefined && { container }) })
    },
  }
  return {
    files,
    add({ fields, file }: SentForm, id: string, container?: string): FakeFile {
      if (!file) throw new Error('a form without a file was not refused')
      const added = { id, ...file, fields, byClient: true, ...(container !== undefined && { container }) }
      there.set(id, added)
      files.put.push(added)
      return added
    },
    delete(id: string): boolean {
      if (!there.delete(id)) return false
      files.deleted.push(id)
      return true
    },
  }
}

export interface FilesDoor {
  files: FakeFiles
  /** Undefined for a path that is none of a files API. */
  answer(call: FilesCall): Promise<FilesAnswer> | undefined
}

/** The door of a vendor's files: what it has no path for is a 404, and what a test has in store comes first. */
export function filesDoor(
  paths: RegExp,
  files: FakeFiles,
  serve: (call: FilesCall) => Promise<FilesAnswer>,
): FilesDoor {
  return {
    files,
    answer(call) {
      if (!paths.test(call.path)) return undefined
      const what = `${call.method} ${call.path}`
      files.asked.push(what)
      const at = files.instead.findIndex(({ on }) => on.test(what))
      const { answer, delayMs } = files.instead.splice(at < 0 ? files.instead.length : at, 1)[0] ?? {}
      if (answer) return Promise.resolve(answer)
      return serve(call).then((own) => {
        if ((own.status ?? 200) >= 400) files.refusals.push(`${what}: ${String(own.body)}`)
        return delayMs === undefined ? own : { ...own, delayMs }
      })
    },
  }
}

/** A multipart form, as strictly as a browser's own parser reads it. */
export async function formIn({ headers, body }: FilesCall): Promise<SentForm | undefined> {
  const type = headers['content-type'] ?? ''
  if (!type.startsWith('multipart/form-data')) return undefined
  const form = await new Response(body, { headers: { 'content-type': type } }).formData().catch(() => undefined)
  if (form === undefined) return undefined
  const fields: Record<string, string> = {}
  let file: SentForm['file']
  for (const [name, value] of form) {
    if (typeof value === 'string') fields[name] = value
    else if (name === 'file' && file === undefined)
      file = { name: value.name, mediaType: value.type, content: Buffer.from(await value.arrayBuffer()) }
    else return undefined
  }
  return { fields, file }
}

export const seconds = (text: string | undefined, least: number, most: number): boolean =>
  text === undefined || (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most)

export const bytes = ({ content }: FakeFile): RawAnswer => ({
  status: 200,
  headers: { 'content-type': 'application/binary' },
  body: content,
})

export const jsonAnswer = (status: number, body: FakeJson): RawAnswer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})
