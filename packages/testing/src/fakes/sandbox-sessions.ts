import { randomBytes } from 'node:crypto'
import { posix } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FakeSandboxOptions, SandboxReply } from './sandbox-backend.ts'
import { runEditor, runProgram, runShell } from './sandbox-program.ts'
import type { ExecInput, ParsedSandboxOperation } from './sandbox-wire.ts'

export interface FakeSandboxSession {
  variables: Map<string, string | number>
  files: Map<string, Uint8Array>
  /** What each edited file held before, newest last. */
  undo: Map<string, (Uint8Array | undefined)[]>
  image: string | undefined
  idleTimeoutSeconds: number | null
  createdAt: number
  lastActivityAt: number
}

/** What a call came to; `sleepSeconds` is cut short by the call's timeout. */
export interface FakeRun {
  stdout: string
  stderr: string
  returnCode: number
  sleepSeconds?: number
}

export interface SandboxSessions {
  live: Map<string, FakeSandboxSession>
  perform(operation: ParsedSandboxOperation, session: string | undefined): Promise<SandboxReply> | SandboxReply
}

const now = (): number => Date.now() / 1_000
const detail = (status: number, text: string): SandboxReply => ({ status, body: { detail: text } })

export function openSandboxSessions({
  capacity = 100,
  idleTimeoutSeconds = 300,
  maxFileBytes = 1024 * 1024,
  sessionId = () => randomBytes(16).toString('hex'),
}: FakeSandboxOptions): SandboxSessions {
  const live = new Map<string, FakeSandboxSession>()
  const find = (id: string | undefined): FakeSandboxSession | undefined => {
    const session = live.get(id ?? '')
    if (!session) return undefined
    const idle = session.idleTimeoutSeconds
    if (idle !== null && now() - session.lastActivityAt > idle) {
      live.delete(id as string)
      return undefined
    }
    session.lastActivityAt = now()
    return session
  }

  return {
    live,
    perform(operation, id) {
      if (operation.name === 'create') {
        if (live.size >= capacity) return { ...detail(503, 'at capacity'), headers: { 'retry-after': '7' } }
        const hint = operation.input.idle_timeout_seconds ?? idleTimeoutSeconds
        const idle = idleTimeoutSeconds === null || hint === null ? null : Math.min(hint, idleTimeoutSeconds)
        const session: FakeSandboxSession = {
          variables: new Map(),
          files: new Map(),
          undo: new Map(),
          image: operation.input.image,
          idleTimeoutSeconds: idle,
          createdAt: now(),
          lastActivityAt: now(),
        }
        const name = sessionId()
        live.set(name, session)
        const { createdAt: created_at, lastActivityAt: last_activity_at } = session
        const handle = { session_id: name, created_at, last_activity_at }
        return { status: 201, body: idle === null ? handle : { ...handle, idle_timeout_seconds: idle } }
      }
      if (operation.name === 'destroy') return live.delete(id ?? '') ? { status: 204 } : detail(404, 'unknown session')
      const session = find(id)
      if (!session) return detail(404, 'unknown session')
      if (operation.name === 'exec') return exec(session, operation.input)
      const path = posix.normalize(operation.path)
      if (path === '..' || path.startsWith('../') || path.startsWith('/')) return detail(403, 'outside the workspace')
      switch (operation.name) {
        case 'list':
          return list(session, path)
        case 'get':
          return get(session, path)
        case 'put':
          if (operation.bytes.length > maxFileBytes) return detail(413, 'too large')
          session.files.set(path, operation.bytes)
          return { status: 201, body: { path, size_bytes: operation.bytes.length } }
        default:
          return operation satisfies never
      }
    },
  }
}

async function exec(session: FakeSandboxSession, call: ExecInput): Promise<SandboxReply> {
  const began = performance.now()
  const run = perform(session, call)
  const granted = call.timeout_seconds ?? 30
  await sleep(Math.min(run.sleepSeconds ?? 0, granted) * 1_000)
  const timedOut = (run.sleepSeconds ?? 0) > granted
  const tool_use_id = call.tool_use_id ?? `srvtoolu_${randomBytes(12).toString('hex')}`
  const content = {
    type: 'code_execution_result',
    stdout: run.stdout,
    stderr: timedOut ? `${run.stderr}timed out after ${granted} s\n` : run.stderr,
    return_code: timedOut ? 124 : run.returnCode,
    content: [],
  }
  return {
    status: 200,
    body: {
      tool_use_id,
      execution_time_ms: Math.round(performance.now() - began),
      result_block: { type: `${call.tool}_tool_result`, tool_use_id, content },
    },
  }
}

function perform(session: FakeSandboxSession, call: ExecInput): FakeRun {
  switch (call.tool) {
    case 'code_execution':
      return runProgram(session, call.input.code)
    case 'bash_code_execution':
      return runShell(session, call.input.command)
    case 'text_editor_code_execution':
      return runEditor(session, call.input)
    default:
      return call satisfies never
  }
}

/** When bytes were first seen: each write of a file makes new ones, so this is when it was written. */
const writtenAt = new WeakMap<Uint8Array, number>()
const timeOf = (bytes: Uint8Array): number => {
  const at = writtenAt.get(bytes) ?? now()
  writtenAt.set(bytes, at)
  return at
}

function list(session: FakeSandboxSession, folder: string): SandboxReply {
  const inside = [...session.files].filter(([path]) => folder === '.' || path.startsWith(`${folder}/`))
  if (folder !== '.' && inside.length === 0) return detail(404, 'no such folder')
  const files = inside.map(([path, bytes]) => ({ path, size_bytes: bytes.length, modified_at: timeOf(bytes) }))
  return { status: 200, body: { files } }
}

function get(session: FakeSandboxSession, path: string): SandboxReply {
  const bytes = session.files.get(path)
  if (bytes) return { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: bytes }
  const isFolder = path === '.' || [...session.files.keys()].some((name) => name.startsWith(`${path}/`))
  return isFolder ? detail(400, 'a folder, not a file') : detail(404, 'no such file')
}
