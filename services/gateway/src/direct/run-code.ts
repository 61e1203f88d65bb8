import type { Bus } from '@tollgate/bus'
import { type FileReference, type HeldContainer, sandboxSeed } from '@tollgate/contracts'
import { type CallAt, failed, type Outcome } from '@tollgate/mcp-web'
import { codeFailures, programFailed } from '../tools/code-execution.ts'
import {
  type CodeKind,
  openSandboxSession,
  type SandboxRun,
  type SandboxRunEvent,
  type SandboxSession,
  type SessionWish,
} from '../tools/sandbox-session.ts'
import { servedHere } from './served-here.ts'

export interface CodeWish extends SessionWish {
  code: string
  kind: CodeKind
  /** To be in the working directory when it begins. */
  files: FileReference[]
}

export type OutputPiece = Extract<SandboxRunEvent, { type: 'output' }>

/** Whoever is told of a run while it goes on. */
export interface RunListener {
  /** The sandbox is there: nothing of ours can refuse the run any more. */
  begin(container: HeldContainer | undefined): void
  output(piece: OutputPiece): void
}

export interface CodeRan {
  run: Extract<SandboxRun, { status: 'ok' }>
  container: HeldContainer | undefined
  executionMs: number
}

const SEED_MS = 120_000
const { label } = servedHere.code_execution

/**
 * Runs code once, in a sandbox of its own or in one that is kept. A program that fails is a run like any other; only it
 * counts as an error. What it throws are refusals, from before the code ran, and ends of the request.
 */
export async function runCode(
  bus: Bus,
  wish: CodeWish,
  listener: RunListener | undefined,
  at: CallAt,
): Promise<Outcome<CodeRan>> {
  const session = await openSandboxSession(bus, wish, at)
  /** Whether the client knows of a sandbox that is kept (C-29). */
  let told = false
  try {
    await seed(bus, wish.files, session, at)
    listener?.begin(session.container())
    told = listener !== undefined
    const began = performance.now()
    const run = await session.execute(wish.code, wish.kind, at, listener && heard(listener))
    const executionMs = Math.round(performance.now() - began)
    if (run.status === 'failed') return failed(...codeFailures[run.reason], { label })
    const value = { run, executionMs, container: await released(session) }
    return { ok: true, value, label, isError: programFailed(run) }
  } finally {
    // a run that was broken off is over for the client: a sandbox nobody heard of goes, and any other may be used again
    void session.close({ discard: !told }).catch(() => {})
  }
}

const heard =
  ({ output }: RunListener) =>
  (event: SandboxRunEvent): void => {
    if (event.type === 'output') output(event)
  }

/** Given back before the client is told of it, who may come back at once (C-18); its claim ends by itself if that fails. */
async function released(session: SandboxSession): Promise<HeldContainer | undefined> {
  const known = session.container()
  return session.close().catch(() => known)
}

async function seed(bus: Bus, files: FileReference[], session: SandboxSession, at: CallAt): Promise<void> {
  const id = session.id()
  if (files.length === 0 || id === undefined) return
  const deadline = Math.min(at.deadline, Date.now() + SEED_MS)
  await bus.call(sandboxSeed, { tenancy: at.tenancy, session: id, files }, { deadline, signal: at.signal })
}
