import type { IncomingMessage } from 'node:http'
import { z } from 'zod'

/** The operations as their requests were parsed. */
export type ParsedSandboxOperation =
  | { name: 'create'; input: z.output<typeof createSession> }
  | { name: 'exec'; input: ExecInput }
  | { name: 'destroy' }
  | { name: 'list'; path: string }
  | { name: 'get'; path: string }
  | { name: 'put'; path: string; bytes: Uint8Array }
export type SandboxOperation = ParsedSandboxOperation['name']

interface Refused {
  status: number
  body: { detail: unknown }
}
interface Parsed {
  operation: ParsedSandboxOperation
  session: string | undefined
  body: string
}

const seconds = z.int().min(1)
const createSession = z.object({
  image: z.string().optional(),
  idle_timeout_seconds: seconds.nullish(),
  max_lifetime_seconds: seconds.nullish(),
})

const code = z.object({ code: z.string().min(1) })
const shell = z.object({ command: z.string().min(1) })
const path = z.string().min(1)
const editor = z.discriminatedUnion('command', [
  z.object({ command: z.literal('view'), path, view_range: z.tuple([z.int(), z.int()]).nullish() }),
  z.object({ command: z.literal('create'), path, file_text: z.string() }),
  z.object({ command: z.literal('str_replace'), path, old_str: z.string(), new_str: z.string() }),
  z.object({ command: z.literal('insert'), path, insert_line: z.int(), new_str: z.string() }),
  z.object({ command: z.literal('undo_edit'), path }),
])
export type EditorInput = z.output<typeof editor>

const call = <T extends string, I extends z.ZodType>(tool: T, input: I) =>
  z.object({
    tool: z.literal(tool),
    input,
    timeout_seconds: seconds.optional(),
    tool_use_id: z.string().nullish(),
  })
const execRequest = z.discriminatedUnion('tool', [
  call('code_execution', code),
  call('bash_code_execution', shell),
  call('text_editor_code_execution', editor),
])
export type ExecInput = z.output<typeof execRequest>
const tools: unknown[] = ['code_execution', 'bash_code_execution', 'text_editor_code_execution']

/** A request as the contract allows it, or the status it names for what is wrong with it. */
export async function parseSandboxRequest(
  request: IncomingMessage,
  bytes: Buffer,
  { files = true, unknownMembers = 'refuse' }: { files?: boolean; unknownMembers?: 'refuse' | 'ignore' },
): Promise<Parsed | Refused> {
  const url = new URL(request.url ?? '/', 'http://sandbox')
  const [, root, id, part, leaf, ...rest] = url.pathname.split('/')
  if (root !== 'sessions' || rest.length > 0) return refuse(404, 'no such path')
  const session = id === undefined ? undefined : decodeURIComponent(id)
  const route = [request.method, id === undefined ? '' : ':id', part, leaf].filter(Boolean).join(' ')
  const text = bytes.toString('utf8')
  const json = <S extends z.ZodType>(shape: S) => strictly(shape, request, text, unknownMembers)

  if (route === 'POST') {
    const input = json(createSession)
    return 'status' in input ? input : { operation: { name: 'create', input: input.body }, session, body: text }
  }
  if (route === 'POST :id exec') {
    const tool = (parseJson(text) as { tool?: unknown } | undefined)?.tool
    if (typeof tool === 'string' && !tools.includes(tool)) return refuse(400, 'unknown tool kind')
    const input = json(execRequest)
    return 'status' in input ? input : { operation: { name: 'exec', input: input.body }, session, body: text }
  }
  if (route === 'DELETE :id') return { operation: { name: 'destroy' }, session, body: '' }
  if (!files) return refuse(404, 'file operations are not served')
  const asked = url.searchParams.get('path')
  if (route === 'GET :id files list') return { operation: { name: 'list', path: asked ?? '.' }, session, body: '' }
  if (route === 'GET :id files')
    return asked ? { operation: { name: 'get', path: asked }, session, body: '' } : refuse(422, 'path is required')
  if (route === 'POST :id files') return parseUpload(request, bytes, session)
  return refuse(405, 'no such operation')
}

async function parseUpload(
  request: IncomingMessage,
  bytes: Buffer,
  session: string | undefined,
): Promise<Parsed | Refused> {
  if (Number(request.headers['content-length']) !== bytes.length) return refuse(422, 'an upload says its length')
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  const form = await new Response(new Uint8Array(bytes), { headers }).formData().catch(() => undefined)
  const file = form?.get('file')
  if (!file || typeof file === 'string') return refuse(422, 'a part named file is required')
  const path = form?.get('path')
  const operation = {
    name: 'put' as const,
    path: typeof path === 'string' && path !== '' ? path : file.name,
    bytes: new Uint8Array(await file.arrayBuffer()),
  }
  return { operation, session, body: '' }
}

function strictly<S extends z.ZodType>(
  shape: S,
  request: IncomingMessage,
  text: string,
  unknownMembers: 'refuse' | 'ignore',
): { body: z.output<S> } | Refused {
  if (text !== '' && !request.headers['content-type']?.startsWith('application/json'))
    return refuse(422, 'must be application/json')
  const value = text === '' ? {} : parseJson(text)
  const read = shape.safeParse(value)
  if (!read.success) return refuse(422, z.prettifyError(read.error))
  if (unknownMembers === 'refuse' && members(value) !== members(read.data)) return refuse(422, 'unknown members')
  return { body: read.data }
}

/** How many members there are, nested ones too: parsing drops those the contract does not name. */
function members(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce((sum: number, member) => sum + 1 + members(member), 0)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const refuse = (status: number, detail: string): Refused => ({ status, body: { detail } })
