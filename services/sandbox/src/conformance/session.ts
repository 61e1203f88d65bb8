import { Breach, type ConformanceClient, expectShape, expectStatus, type Reply, shapes } from './client.ts'

/** A session of the backend under test, released when the check that leased it ends. */
export interface TestSession {
  id: string
  idleSeconds: number | undefined
  exec(request: object, seconds?: number): Promise<Reply>
  /** Runs a call and reads its result block. */
  run(tool: string, input: object, seconds?: number): Promise<Ran>
  python(code: string, seconds?: number): Promise<Ran>
  file(method: string, query: string, form?: FormData): Promise<Reply>
  put(path: string, text: string): Promise<Reply>
  release(): Promise<Reply>
}

export interface Ran {
  type: string
  stdout: string
  stderr: string
  code: number
}

/** A client waits longer than it grants (CP-16). */
const PATIENCE_MS = 10_000
const DEFAULT_SECONDS = 30

export async function leaseSession(client: ConformanceClient, hints: object = {}): Promise<TestSession> {
  const handle = expectShape(await client.send('POST', '/sessions', { json: hints }), 201, shapes.handle)
  const at = `/sessions/${encodeURIComponent(handle.session_id)}`
  const exec = (json: object, seconds = DEFAULT_SECONDS) =>
    client.send('POST', `${at}/exec`, { json, timeoutMs: seconds * 1_000 + PATIENCE_MS })
  const run = async (tool: string, input: object, seconds = DEFAULT_SECONDS): Promise<Ran> => {
    const reply = await exec({ tool, input, timeout_seconds: seconds }, seconds)
    const { result_block, tool_use_id } = expectShape(reply, 200, shapes.executed)
    if (result_block.tool_use_id !== tool_use_id) throw new Breach('the block and its envelope have different ids')
    const { stdout, stderr, return_code } = result_block.content
    return { type: result_block.type, stdout: stdout ?? '', stderr: stderr ?? '', code: return_code ?? 0 }
  }
  const file = (method: string, query: string, form?: FormData) =>
    client.send(method, `${at}/${query}`, form ? { form } : {})
  return {
    id: handle.session_id,
    idleSeconds: handle.idle_timeout_seconds,
    exec,
    run,
    python: (code, seconds) => run('code_execution', { code }, seconds),
    file,
    put(path, text) {
      const form = new FormData()
      form.set('file', new Blob([text], { type: 'text/plain' }), path.split('/').at(-1))
      form.set('path', path)
      return file('POST', 'files', form)
    },
    release: () => client.send('DELETE', at),
  }
}

/** Leases one, uses it, releases it whatever came of it. */
export async function withSession<T>(
  client: ConformanceClient,
  work: (session: TestSession) => Promise<T>,
  hints: object = {},
): Promise<T> {
  const session = await leaseSession(client, hints)
  try {
    return await work(session)
  } finally {
    expectStatus(await session.release(), 204, 404)
  }
}
