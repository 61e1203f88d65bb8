import { openLog } from '@tollgate/telemetry'
import { defaultSandboxSettings, type RunningSandbox, type SandboxSettings, startSandbox } from '../src/index.ts'

export const log = openLog({ service: 'sandbox-test', level: 'silent' })

export interface Content {
  stdout: string
  stderr: string
  return_code: number
  content: { type: string; filename: string; file_id: string }[]
  ended_by?: string
}
interface Executed {
  tool_use_id: string
  execution_time_ms: number
  result_block: { type: string; tool_use_id: string; content: Content }
}
interface Listed {
  path: string
  size_bytes: number
  modified_at: number
  mime_type: string | null
}

export interface Answer<T> {
  status: number
  headers: Headers
  body: T
}

export interface SendOptions {
  json?: unknown
  body?: FormData | string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** A client that does nothing on its own: what a test sends is what goes out. */
export const clientOf = (url: string, token?: string) => ({
  async send<T = Record<string, unknown>>(method: string, path: string, options: SendOptions = {}): Promise<Answer<T>> {
    const { json, body, headers = {}, signal } = options
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: json === undefined ? (body ?? null) : JSON.stringify(json),
      ...(signal ? { signal } : {}),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? (undefined as T) : JSON.parse(text),
    }
  },
})
type Client = ReturnType<typeof clientOf>

export interface Backend extends Client {
  url: string
  sandbox: RunningSandbox
  open(options?: object): Promise<SessionClient>
  close(): Promise<void>
}

export async function openBackend(settings: Partial<SandboxSettings> = {}): Promise<Backend> {
  const sandbox = await startSandbox({ log, settings: { ...defaultSandboxSettings, ...settings } })
  const client = clientOf(sandbox.url, settings.token)
  return {
    ...client,
    sandbox,
    url: sandbox.url,
    async open(options = {}) {
      const { status, body } = await client.send<{ session_id: string }>('POST', '/sessions', { json: options })
      if (status !== 201) throw new Error(`no session: ${status}`)
      return sessionClient(client, sandbox.url, body.session_id)
    },
    close: async () => void (await sandbox.close(Date.now())),
  }
}

export type SessionClient = ReturnType<typeof sessionClient>

export function sessionClient(client: Client, url: string, id: string) {
  const at = `/sessions/${id}`
  const exec = (json: unknown, options: SendOptions = {}) =>
    client.send<Executed>('POST', `${at}/exec`, { json, ...options })
  const content = async (tool: string, input: object, timeout_seconds?: number): Promise<Content> => {
    const { status, body } = await exec({ tool, input, ...(timeout_seconds === undefined ? {} : { timeout_seconds }) })
    if (status !== 200) throw new Error(`exec answered ${status}: ${JSON.stringify(body)}`)
    return body.result_block.content
  }
  return {
    id,
    exec,
    python: (code: string, seconds?: number) => content('code_execution', { code }, seconds),
    shell: (command: string, seconds?: number) => content('bash_code_execution', { command }, seconds),
    edit: (input: object) => content('text_editor_code_execution', input),
    put(path: string | undefined, bytes: Uint8Array<ArrayBuffer> | string, name = 'upload.bin') {
      const form = new FormData()
      form.set('file', new Blob([bytes]), name)
      if (path !== undefined) form.set('path', path)
      return client.send<{ path: string; size_bytes: number }>('POST', `${at}/files`, { body: form })
    },
    async get(path: string) {
      const response = await fetch(`${url}${at}/files?path=${encodeURIComponent(path)}`)
      return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
    },
    list: (path = '.') => client.send<{ files: Listed[] }>('GET', `${at}/files/list?path=${encodeURIComponent(path)}`),
    end: () => client.send('DELETE', at),
  }
}

/** What a program printed, once it is clear that it ran well. */
export function printed({ stdout, stderr, return_code }: Content): string {
  if (return_code !== 0) throw new Error(`exit code ${return_code}: ${stderr}`)
  return stdout
}
