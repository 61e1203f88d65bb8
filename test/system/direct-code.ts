import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ask, makeKey } from './client.ts'
import { type System, settledRow } from './system.ts'

const PATH = '/api/v1/code-execution'

/** Whether this machine runs a command with such an argument. */
const runs = (argument: string): boolean =>
  readdirSync('/proc').some((entry) => {
    try {
      return /^\d+$/.test(entry) && readFileSync(`/proc/${entry}/cmdline`, 'utf8').includes(argument)
    } catch {
      return false // it ended meanwhile
    }
  })

/** Code without a model, in the sandbox that the deployment really has. */
export function directCode(use: () => System): void {
  const run = (body: object, key = use().key) => ask(use().deployment, 'POST', PATH, { key, body })

  describe('code that is run without a model', () => {
    test('P-01 P-02 P-20 P-21 A-21 answers what a program did, and is charged as one call of the tool', async () => {
      const answered = await run({ code: 'import sys\nprint(6 * 7)\nprint("to the other", file=sys.stderr)\n"last"' })
      expect(answered.json).toMatchObject({ object: 'code_execution', return_code: 0, files: [] })
      expect(answered.json.stdout).toMatch(/^42\n/)
      expect(answered.json.stderr).toContain('to the other')
      const { row, text } = await settledRow(use().deployment, answered.headers.get('x-request-id') ?? '')
      expect(row).toMatchObject({
        endpoint: PATH,
        model: 'code_execution',
        provider: 'otari',
        total_tokens: 0,
        cost: 0.001234,
        status: 'success',
        settled_by: 'gateway',
        billing_meters: { tools: { code_execution: { billed: 1, errors: 0 } } },
        pricing_breakdown: [{ meter: 'code_execution_calls', label: 'otari:code_execution', units: 1, cost: 0.001234 }],
      })
      expect(text).toContain('"cost":0.001234')
    })

    test('X-30 P-10 a program or a command that fails is an answer, and costs nothing', async () => {
      for (const body of [{ code: 'raise ValueError("no")' }, { command: 'echo no >&2; exit 3' }]) {
        const answered = await run(body)
        expect(answered.status).toBe(200)
        expect(answered.json.return_code).not.toBe(0)
        expect(answered.json.stderr).toContain('no')
        const { row } = await settledRow(use().deployment, answered.headers.get('x-request-id') ?? '')
        expect(row).toMatchObject({ billing_meters: { tools: { code_execution: { billed: 0, errors: 1 } } } })
        expect(row.cost ?? 0).toBe(0)
      }
    })

    test('C-06 C-09 keeps its sandbox for the next run where that is asked for', async () => {
      const first = await run({ code: 'kept = 41', container: 'auto' })
      const { id } = first.json.container
      expect(first.headers.get('otari-container-id')).toBe(id)
      const second = await run({ code: 'print(kept + 1)', container: id })
      expect(second.json).toMatchObject({ stdout: '42\n', container: { id } })
      expect((await run({ code: '1', container: `otari_cntr_${'0'.repeat(32)}` })).status).toBe(400)
    })

    test('BR-160 is heard while it runs, and ends with a client that leaves', async () => {
      const { deployment, key } = use()
      const mark = `71.${Math.floor(Math.random() * 1e9)}`
      const gone = new AbortController()
      const response = await fetch(deployment.url + PATH, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify({ command: `echo begun; sleep ${mark}`, stream: true }),
        signal: gone.signal,
      })
      expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
      const pieces = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
      let text = ''
      // the program is far from its end when its first words are here
      while (!text.includes('begun')) text += (await pieces.read()).value ?? expect.fail(`ended after ${text}`)
      expect(text).toContain('event: output\ndata: {"stream":"stdout","text":"begun\\n"}\n\n')
      await expect.poll(() => runs(mark)).toBe(true)
      gone.abort()
      await expect.poll(() => runs(mark), { timeout: 10_000 }).toBe(false)
    })

    test('W-01 W-20 W-22 does what the policy of the workspace lets it', async () => {
      const { deployment, outside } = use()
      const admin = (method: string, path: string, body: object) =>
        ask(deployment, method, path, { key: deployment.masterKey, body })
      const made = await admin('POST', '/api/v1/workspaces', { name: 'Narrow' })
      const workspace = made.json.id as string
      const key = await makeKey(deployment, { workspace_id: workspace })
      const policy = (body: object) => admin('PUT', `/api/v1/workspaces/${workspace}/code-execution-policy`, body)

      await policy({ enabled: true, exec_timeout_s: 1 })
      expect((await run({ command: 'sleep 30' }, key)).json).toMatchObject({ limit: 'time' })
      await policy({ enabled: false })
      const refusal = { status: 403, json: { detail: 'code execution is not enabled for this workspace' } }
      expect(await run({ code: '1' }, key)).toMatchObject(refusal)
      const asked = outside.openai.requests.length
      const body = {
        model: 'openai:gpt-5',
        messages: [{ role: 'user', content: 'hello' }],
        tools: [{ type: 'otari_code_execution' }],
      }
      const told = await ask(deployment, 'POST', '/api/v1/chat/completions', { key, body })
      expect(told.status).toBe(403)
      expect(told.text).toContain(refusal.json.detail)
      expect(outside.openai.requests).toHaveLength(asked)
    })
  })
}
