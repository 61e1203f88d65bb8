import { z } from 'zod'
import type { ModelEvent } from '../../conversation/events.ts'
import type { JsonObject, Message } from '../../conversation/turn.ts'
import { formOf } from '../multipart.ts'
import { bodyOf, COPY_SECONDS, type MadeThere, type ProviderFiles, type Sendable } from '../provider-files.ts'
import { parseJson } from '../reply.ts'
import type { UpstreamConnection, UpstreamReply } from '../upstream.ts'
import { brokenAnswer, type Origin, UpstreamFault } from '../upstream-fault.ts'

const BETA = 'files-api-2025-04-14'
const own = { 'anthropic-beta': BETA }
const PATH = '/v1/files'
const MIB = 1024 * 1024

const fileId = z.string().regex(/^[\w-]{1,128}$/)
const metadata = z.object({
  id: fileId,
  filename: z.string(),
  mime_type: z.string().nullish(),
  size_bytes: z.int().nonnegative(),
})

/** Anthropic's Files API: copies go in as `container_upload`, and what code makes is named in its results. */
export function anthropicFiles(origin: Origin, upstream: UpstreamConnection): ProviderFiles {
  async function read(reply: UpstreamReply): Promise<z.infer<typeof metadata>> {
    const told = metadata.safeParse(parseJson((await reply.bytes()).toString('utf8'), origin))
    if (!told.success) throw brokenAnswer('unreadable', origin, new Error('no file'))
    return told.data
  }

  return {
    most: { files: 100, bytes: 500 * MIB },
    async put(file, _sent, limits) {
      const form = formOf({ expires_in_seconds: String(COPY_SECONDS) }, file)
      const { id } = await read(await upstream.upload(PATH, form, limits, own))
      return { id }
    },
    async remove({ id }, limits) {
      try {
        await (await upstream.delete(`${PATH}/${id}`, limits, own)).bytes()
      } catch (thrown) {
        if (!(thrown instanceof UpstreamFault && thrown.upstreamStatus === 404)) throw thrown
      }
    },
    attach(sent, copies) {
      const blocks = copies.map(({ id }): JsonObject => ({ type: 'container_upload', file_id: id }))
      return { ...sent, turn: withBeta(sent.turn), messages: withBlocks(sent.messages, blocks) }
    },
    namedIn,
    async get({ id }, limits) {
      const { filename, mime_type, size_bytes } = await read(await upstream.get(`${PATH}/${id}`, limits, own))
      const content = bodyOf(() => upstream.get(`${PATH}/${id}/content`, limits, own))
      return { name: filename, mediaType: mime_type ?? undefined, bytes: size_bytes, content }
    },
  }
}

function withBeta(turn: Sendable['turn']): Sendable['turn'] {
  const betas = turn.headers?.['anthropic-beta']?.split(',').map((beta) => beta.trim()) ?? []
  if (betas.includes(BETA)) return turn
  return { ...turn, headers: { ...turn.headers, 'anthropic-beta': [...betas, BETA].join(',') } }
}

/**
 * With the last thing that the client said: ids of copies are new with every request, and what stands before them is as
 * the provider has it cached.
 */
function withBlocks(messages: Message[], blocks: JsonObject[]): Message[] {
  const last = messages.findLastIndex(({ role, raw }) => role === 'user' || raw?.value.role === 'user')
  return messages.map((message, at) => (at === last ? joined(message, blocks) : message))
}

function joined({ role, parts, raw }: Message, blocks: JsonObject[]): Message {
  const added = blocks.map((block) => ({
    type: 'other' as const,
    dialect: 'messages' as const,
    kind: 'container_upload',
    raw: block,
  }))
  const message = { role, parts: [...parts, ...added] }
  if (raw?.dialect !== 'messages') return message
  const { content } = raw.value
  const said = typeof content === 'string' ? (content === '' ? [] : [{ type: 'text', text: content }]) : content
  return { ...message, raw: { ...raw, value: { ...raw.value, content: [...(said as JsonObject[]), ...blocks] } } }
}

/** Results of both forms of the tool: whole programs, and commands of a shell. */
const result = z.object({
  type: z.enum(['code_execution_tool_result', 'bash_code_execution_tool_result']),
  content: z.object({ content: z.array(z.unknown()) }),
})
const output = z.object({
  type: z.enum(['code_execution_output', 'bash_code_execution_output']),
  file_id: fileId,
})

function namedIn(event: ModelEvent): MadeThere[] {
  if (event.type !== 'open' || event.block.kind !== 'other' || event.block.dialect !== 'messages') return []
  const made = result.safeParse(event.block.value).data?.content.content ?? []
  return made.flatMap((one): MadeThere[] => {
    const named = output.safeParse(one).data
    return named ? [{ type: 'file', id: named.file_id }] : []
  })
}
