import { Readable } from 'node:stream'
import { type FakeSandboxOptions, openFakeSandbox, type SandboxReply } from '@tollgate/testing'
import { onTestFinished } from 'vitest'
import { openProtocol } from '../src/protocol/client.ts'

export const limits = () => ({ signal: new AbortController().signal, deadline: Date.now() + 60_000 })

export async function open(options: FakeSandboxOptions = {}, { suffix = '' } = {}) {
  const backend = await openFakeSandbox(options)
  const { token } = options
  const provider = openProtocol({ url: backend.url + suffix, ...(token === undefined ? {} : { token }) })
  onTestFinished(async () => {
    await provider.close()
    await backend.close()
  })
  return { backend, provider }
}

/** A session on a backend that answers every exec with `reply`. */
export async function answering(reply: SandboxReply | (() => Promise<SandboxReply>)) {
  const respond: FakeSandboxOptions['respond'] = ({ operation }) =>
    operation === 'exec' ? (typeof reply === 'function' ? reply() : reply) : undefined
  const { provider, backend } = await open({ respond })
  const session = await provider.create({}, limits())
  if (session.status !== 'ok') throw new Error(session.reason)
  return {
    backend,
    provider,
    session: session.session,
    exec: (timeoutSeconds = 60) =>
      provider.exec(session.session, { kind: 'python', code: 'print(1)', timeoutSeconds }, limits()),
  }
}

export const result = (content: unknown, envelope: object = {}): SandboxReply => ({
  status: 200,
  body: {
    tool_use_id: 't',
    result_block: { type: 'code_execution_tool_result', tool_use_id: 't', content },
    ...envelope,
  },
})
export const ran = { status: 'ok', stdout: '', stderr: '', returnCode: 0, files: [] }
export const refused = { status: 'failed', reason: 'refused' }

export const lease = async (provider: ReturnType<typeof openProtocol>, options = {}) => {
  const opened = await provider.create(options, limits())
  if (opened.status !== 'ok') throw new Error(opened.reason)
  return opened.session
}
export const text = async (content: Readable) => Buffer.concat(await content.toArray()).toString()
export const fileOf = (path: string, body: string, mediaType = 'text/csv') => ({
  path,
  mediaType,
  bytes: Buffer.byteLength(body),
  content: Readable.from([Buffer.from(body)]),
})
