import { Pool } from 'undici'

/** Just enough of protocol v1 to measure a backend; a call that fails ends the measurement. */
export interface BenchClient {
  create(): Promise<string>
  destroy(session: string): Promise<void>
  exec(session: string, tool: string, input: object): Promise<{ stdout: string; stderr: string }>
  put(session: string, path: string, bytes: Buffer): Promise<void>
  get(session: string, path: string): Promise<number>
  list(session: string): Promise<void>
  close(): Promise<void>
}

interface Executed {
  result_block: { content: { stdout: string; stderr: string; return_code: number } }
}

export function openBenchClient(origin: string, connections: number): BenchClient {
  const pool = new Pool(origin, { connections, pipelining: 1 })
  const send = async (method: 'GET' | 'POST' | 'DELETE', path: string, type?: string, body?: string | Buffer) => {
    const answer = await pool.request({
      method,
      path,
      body: body ?? null,
      headers: type ? { 'content-type': type } : {},
    })
    if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${await answer.body.text()}`)
    return answer.body
  }
  return {
    async create() {
      const body = await send('POST', '/sessions', 'application/json', '{}')
      return ((await body.json()) as { session_id: string }).session_id
    },
    destroy: async (session) => void (await (await send('DELETE', `/sessions/${session}`)).text()),
    async exec(session, tool, input) {
      const body = await send('POST', `/sessions/${session}/exec`, 'application/json', JSON.stringify({ tool, input }))
      const { content } = ((await body.json()) as Executed).result_block
      if (content.return_code !== 0) throw new Error(`exit code ${content.return_code}: ${content.stderr.slice(-500)}`)
      return content
    },
    async put(session, path, bytes) {
      const boundary = 'bench-boundary-0123456789'
      const part = (head: string) => `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n`
      const form = Buffer.concat([
        Buffer.from(`${part('name="path"')}${path}\r\n${part(`name="file"; filename="${path}"`)}`),
        bytes,
        Buffer.from(`\r\n--${boundary}--\r\n`),
      ])
      await (await send('POST', `/sessions/${session}/files`, `multipart/form-data; boundary=${boundary}`, form)).text()
    },
    async get(session, path) {
      let bytes = 0
      for await (const piece of await send('GET', `/sessions/${session}/files?path=${path}`)) bytes += piece.length
      return bytes
    },
    list: async (session) => void (await (await send('GET', `/sessions/${session}/files/list`)).text()),
    close: () => pool.destroy(),
  }
}
