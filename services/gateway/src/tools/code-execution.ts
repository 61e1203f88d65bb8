import {
  clipBytes,
  type Failure,
  Fault,
  otariLabel,
  otariPriceKeys,
  sandboxClose,
  sandboxExec,
  sandboxOpen,
  type Tenancy,
  TOOL_RESULT_BYTES,
  toolError,
} from '@tollgate/contracts'
import type { ToolOutcome } from '../conversation/events.ts'
import type { JsonObject } from '../conversation/turn.ts'
import { readHint } from './declared-members.ts'
import { type CallContext, noOptions, type OpenTool, type Tool, type ToolResult, type ToolUse } from './tool.ts'

const EXEC_SECONDS = 60
/** The broker waits 10 s longer than it grants (X-31), and the answer has to travel. */
const EXEC_MS = (EXEC_SECONDS + 15) * 1_000
const OPEN_MS = 60_000
const CLOSE_MS = 5_000
/** Each stream keeps its share, so that a long output never hides the traceback after it. */
const STREAM_BYTES = TOOL_RESULT_BYTES / 2 - 1_024
const CUT = '\n[output truncated]\n'

export const codeExecution: Tool = {
  type: 'otari_code_execution',
  name: 'code_execution',
  description: 'Run Python in a sandbox that keeps its state within the request.',
  parameters: { type: 'object', properties: { code: { type: 'string' } }, required: ['code'] },
  hint: (settings) => settings.sandboxPurposeHint ?? 'Use it to calculate, to work on data and to check results.',
  available: ({ sandbox }) => sandbox,
  acceptedTypes: ({ sandbox, executor }) => [
    'otari_code_execution',
    ...(sandbox && executor !== 'provider' ? ['code_execution', 'code_interpreter', 'code_execution_<date>'] : []),
  ],
  unavailable:
    'otari_code_execution tool requested but no sandbox is configured on this gateway. Set OTARI_SANDBOX_URL on the gateway, or remove otari_code_execution from `tools`.',
  read: ({ entry }) =>
    entry.type === 'otari_code_execution' ? { ...noOptions, hint: readHint(entry, 'code_execution') } : noOptions,
  priceKeys: () => otariPriceKeys('code_execution'),
  shownInput: (input) => ({ code: codeOf(input) }),
  shownFailure,
  open: (_options, use, at) => openSandbox(use, at),
}

const codeOf = ({ code }: JsonObject): string => (typeof code === 'string' ? code : '')

function shownFailure(input: JsonObject): ToolOutcome['shown'] {
  return { kind: 'code_execution', code: codeOf(input), stdout: '', stderr: '', returnCode: undefined }
}

/** One session serves every run of the request (C-01). It is leased here, while a refusal can still be an HTTP status. */
async function openSandbox({ bus }: ToolUse, first: CallContext): Promise<OpenTool> {
  const release = ({ id, tenancy }: { id: string; tenancy: Tenancy }) =>
    bus.call(sandboxClose, { tenancy, session: id }, { deadline: Date.now() + CLOSE_MS })
  let session: { id: string; tenancy: Tenancy } | undefined = await lease(first)

  /**
   * Waited for until the request ends, but never broken off: a session made for nobody would keep its place until it had
   * idled away, so one that comes too late is given back.
   */
  async function lease({ tenancy, signal }: CallContext): Promise<{ id: string; tenancy: Tenancy }> {
    signal.throwIfAborted()
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      bus.call(sandboxOpen, { tenancy }, { deadline: Date.now() + OPEN_MS }).then(
        ({ session: id }) => {
          if (!signal.aborted) return resolve({ id, tenancy })
          // its backend reclaims what cannot be given back
          void release({ id, tenancy }).catch(() => {})
        },
        (thrown: unknown) => reject(refusal(Fault.from(thrown))),
      )
    })
  }

  const execute = (id: string, code: string, { tenancy, signal, deadline }: CallContext) =>
    bus.call(
      sandboxExec,
      { tenancy, session: id, code, timeoutSeconds: EXEC_SECONDS },
      { signal, deadline: Math.min(deadline, Date.now() + EXEC_MS) },
    )

  return {
    async run(input, at) {
      const code = codeOf(input)
      if (code.trim() === '') return failed(input, 'code_execution needs "code", a string')
      try {
        session ??= await lease(at)
        const done = await execute(session.id, code, at)
        if (done.status === 'ok') return ran(code, done)
        if (done.reason === 'lost') session = undefined
        return failed(input, texts[done.reason])
      } catch (thrown) {
        const cause = Fault.from(thrown)
        const text = textsOf[cause.failure]
        if (at.signal.aborted || text === undefined) throw cause
        return { ...failed(input, text), cause }
      }
    },
    async close() {
      if (session === undefined) return
      const leased = session
      session = undefined
      await release(leased)
    },
  }
}

/** X-28 and X-29, in the words a client may read; the broker's own stay behind. */
function refusal(fault: Fault): Fault {
  switch (fault.failure) {
    case 'unavailable':
    case 'rate_limited': {
      const text = 'code_execution sandbox temporarily unavailable. Retry later.'
      const { retryAfterSeconds } = fault
      return new Fault('unavailable', text, {
        cause: fault,
        ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      })
    }
    case 'upstream':
    case 'timeout':
      return new Fault(
        'upstream',
        "code_execution sandbox unreachable. Check the sandbox URL in the dashboard's Tools settings, or OTARI_SANDBOX_URL, and that the container is running.",
        { cause: fault },
      )
    default:
      return fault
  }
}

const texts = {
  unreachable: 'code_execution sandbox unreachable',
  lost: 'code_execution sandbox was lost, and with it every variable and file; the next run starts in a new one',
  timeout: 'code execution timed out',
  busy: 'code_execution sandbox temporarily unavailable',
  refused: 'code execution failed',
}

const textsOf: Partial<Record<Failure, string>> = {
  upstream: texts.unreachable,
  timeout: texts.timeout,
  unavailable: texts.busy,
  too_large: 'the code is too long',
}

const served = { label: otariLabel('code_execution'), priceKeys: otariPriceKeys('code_execution') }

const failed = (input: JsonObject, text: string): ToolResult => ({
  outcome: { text: toolError(text), isError: true, shown: shownFailure(input) },
  ...served,
})

interface Run {
  stdout: string
  stderr: string
  returnCode: number
  files: { name: string; file?: { id: string } | undefined }[]
}

/** A program that failed is still a completed run: it is shown whole, but reads and counts as an error (X-30). */
function ran(code: string, { stdout, stderr, returnCode, files }: Run): ToolResult {
  const isError = returnCode !== 0 || (stdout === '' && stderr !== '')
  const named = files.map(({ name, file }) => `${name} (${file ? `file_id: ${file.id}` : 'not stored'})`)
  const sections = [
    ...(stdout === '' ? [] : [`stdout:\n${clipBytes(stdout, STREAM_BYTES, CUT)}`]),
    ...(stderr === '' ? [] : [`stderr:\n${clipBytes(stderr, STREAM_BYTES, CUT)}`]),
    ...(named.length === 0 ? [] : [`files: ${named.join(', ')}`]),
  ]
  const text = sections.length > 0 ? sections.join('\n') : returnCode === 0 ? '(no output)' : `exit code ${returnCode}`
  return {
    outcome: {
      text: clipBytes(isError ? toolError(text) : text, TOOL_RESULT_BYTES, CUT),
      isError,
      shown: { kind: 'code_execution', code, stdout, stderr, returnCode },
    },
    ...served,
  }
}
