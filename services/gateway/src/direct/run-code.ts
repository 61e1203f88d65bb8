import type { HeldContainer } from '@tollgate/contracts'
import { type CallAt, failed, type Outcome } from '@tollgate/mcp-web'
import type { ToolFiles } from '../files/tool-files.ts'
import { codeFailures, keptFiles, programFailed } from '../tools/code-execution.ts'
import {
  type CodeKind,
  openSandboxSession,
  type SandboxRun,
  type SandboxRunEvent,
  type SandboxSession,
  type SessionNeeds,
  type SessionWish,
} from '../tools/sandbox-session.ts'
import { servedHere } from './served-here.ts'

export interface CodeWish extends Omit<SessionWish, 'files'> {
  code: string
  kind: CodeKind
  /** Makes what the run leaves the caller's own (FI-21). */
  toolFiles: ToolFiles
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

const { label } = servedHere.code_execution

/**
 * Runs code once, in a sandbox of its own or in one that is kept. A program that fails is a run like any other; only it
 * counts as an error. What it throws are refusals, from before the code ran, and ends of the request.
 */
export async function runCode(
  needs: SessionNeeds,
  wish: CodeWish,
  listener: RunListener | undefined,
  at: CallAt,
): Promise<Outcome<CodeRan>> {
  const session = await openSandboxSession(needs, { ...wish, files: wish.toolFiles.attached }, at)
  /** Whether the client knows of a sandbox that is kept (C-29). */
  let told = false
  try {
    listener?.begin(session.container())
    told = listener !== undefined
    const began = performance.now()
    const run = await session.execute(wish.code, wish.kind, at, listener && heard(listener))
    const executionMs = Math.round(performance.now() - began)
    if (run.status === 'failed') return failed(...codeFailures[run.reason], { label })
    const files = await keptFiles(run.files, wish.toolFiles, at)
    const value = { run: { ...run, files }, executionMs, container: await released(session) }
    return { ok: true, value, label, isError: programFailed(run) }
  } finally {
    const kept = session.container() !== undefined
    const closing = session.close({ discard: !told }).catch(() => undefined)
    // a sandbox that somebody may come back to is free before they learn how this run ended (C-18)
    if (kept) await closing
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
