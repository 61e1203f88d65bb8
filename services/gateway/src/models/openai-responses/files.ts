import { z } from 'zod'
import type { ModelEvent } from '../../conversation/events.ts'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, ToolEntry } from '../../conversation/turn.ts'
import { formOf } from '../multipart.ts'
import {
  bodyOf,
  COPY_SECONDS,
  type FileCopy,
  type MadeFile,
  type MadeThere,
  type ProviderFiles,
} from '../provider-files.ts'
import { parseJson } from '../reply.ts'
import type { UpstreamConnection, UpstreamReply } from '../upstream.ts'
import { brokenAnswer, type Origin, UpstreamFault } from '../upstream-fault.ts'

const MIB = 1024 * 1024
/** Files of a container that are looked at; one answer's are far fewer. */
const MOST_LISTED = 100

const idText = z.string().regex(/^[\w-]{1,128}$/)
const stored = z.object({ id: idText })
const inContainer = z.object({ id: idText, path: z.string(), bytes: z.int().nonnegative().nullish() })
const listing = z.object({ data: z.array(inContainer.extend({ source: z.string() })) })

const UPLOAD_FIELDS = {
  purpose: 'user_data',
  'expires_after[anchor]': 'created_at',
  'expires_after[seconds]': String(COPY_SECONDS),
}

/**
 * OpenAI's files and those of its containers. A new container is made with copies in it; into one that the client names
 * they are put, and taken out of it again. What code makes is cited in the answer, if at all, and lies in the container.
 */
export function openAiFiles(origin: Origin, upstream: UpstreamConnection): ProviderFiles {
  async function read<T extends z.ZodType>(schema: T, reply: UpstreamReply): Promise<z.output<T>> {
    const told = schema.safeParse(parseJson((await reply.bytes()).toString('utf8'), origin))
    if (!told.success) throw brokenAnswer('unreadable', origin, new Error('no file'))
    return told.data
  }

  return {
    most: { files: 50, bytes: 512 * MIB },
    async put(file, { tools }, limits) {
      const container = containerNamed(tools)
      if (container === undefined)
        return read(stored, await upstream.upload('/files', formOf(UPLOAD_FIELDS, file), limits))
      const { id } = await read(inContainer, await upstream.upload(filesOf(container), formOf({}, file), limits))
      return { id, container }
    },
    async remove({ id, container }, limits) {
      const path = container === undefined ? `/files/${id}` : `${filesOf(container)}/${id}`
      try {
        await (await upstream.delete(path, limits)).bytes()
      } catch (thrown) {
        if (!(thrown instanceof UpstreamFault && thrown.upstreamStatus === 404)) throw thrown
      }
    },
    attach: (sent, copies) => ({ ...sent, tools: sent.tools.map((entry) => withCopies(entry, copies)) }),
    namedIn,
    async list(container, limits) {
      const path = `${filesOf(container)}?limit=${MOST_LISTED}&order=asc`
      const { data } = await read(listing, await upstream.get(path, limits))
      return data.flatMap(({ id, path: at, source }): MadeFile[] =>
        source === 'assistant' ? [{ id, container, name: nameIn(at) }] : [],
      )
    },
    async get({ id, container = '', name }, limits) {
      const { path, bytes } = await read(inContainer, await upstream.get(`${filesOf(container)}/${id}`, limits))
      const content = bodyOf(() => upstream.get(`${filesOf(container)}/${id}/content`, limits))
      return { name: name ?? nameIn(path), mediaType: undefined, bytes: bytes ?? undefined, content }
    },
  }
}

const filesOf = (container: string): string => `/containers/${container}/files`
const nameIn = (path: string): string => path.split('/').at(-1) || 'file'

const isCode = (entry: ToolEntry): boolean => entry.kind === 'typed' && entry.type === 'code_interpreter'

/** The container that the client made before, if it names one. */
function containerNamed(tools: readonly ToolEntry[]): string | undefined {
  return tools.filter(isCode).flatMap(({ raw }) => idText.safeParse(raw.container).data ?? [])[0]
}

function withCopies(entry: ToolEntry, copies: readonly FileCopy[]): ToolEntry {
  const added = copies.flatMap(({ id, container }) => (container === undefined ? [id] : []))
  if (!isCode(entry) || added.length === 0) return entry
  const { container } = entry.raw
  const auto: JsonObject = isObject(container as Json) ? (container as JsonObject) : { type: 'auto' }
  const given = Array.isArray(auto.file_ids) ? auto.file_ids : []
  return { ...entry, raw: { ...entry.raw, container: { ...auto, file_ids: [...given, ...added] } } }
}

const citation = z.object({
  type: z.literal('response.output_text.annotation.added'),
  annotation: z.object({
    type: z.literal('container_file_citation'),
    container_id: idText,
    file_id: idText,
    filename: z.string().min(1).nullish(),
  }),
})
const ran = z.object({ type: z.literal('code_interpreter_call'), container_id: idText })

function namedIn(event: ModelEvent): MadeThere[] {
  if (event.type === 'extra' && event.dialect === 'responses') {
    const cited = citation.safeParse(event.value).data?.annotation
    if (cited === undefined) return []
    const { file_id: id, container_id: container, filename } = cited
    return [{ type: 'file', id, container, ...(filename != null && { name: filename }) }]
  }
  if (event.type !== 'open' || event.block.kind !== 'other' || event.block.dialect !== 'responses') return []
  const call = ran.safeParse(event.block.value).data
  return call ? [{ type: 'container', id: call.container_id }] : []
}
