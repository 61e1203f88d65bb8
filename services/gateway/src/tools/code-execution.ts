import {
  clipBytes,
  type Failure,
  Fault,
  otariLabel,
  otariPriceKeys,
  TOOL_RESULT_BYTES,
  toolError,
} from '@tollgate/contracts'
import type { ToolOutcome } from '../conversation/events.ts'
import type { JsonObject } from '../conversation/turn.ts'
import { readHint } from './declared-members.ts'
import { openSandboxSession, type SandboxRun } from './sandbox-session.ts'
import {
  type BuiltIn,
  type CallContext,
  noOptions,
  type OpenTool,
  type ToolOptions,
  type ToolResult,
  type ToolUse,
} from './tool.ts'

/** Each stream keeps its share, so that a long output never hides the traceback after it. */
const STREAM_BYTES = TOOL_RESULT_BYTES / 2 - 1_024
const CUT = '\n[output truncated]\n'

export const codeExecution: BuiltIn = {
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
  open: (options, use, at) => openSandbox(options, use, at),
}

const codeOf = ({ code }: JsonObject): string => (typeof code === 'string' ? code : '')

function shownFailure(input: JsonObject): ToolOutcome['shown'] {
  return { kind: 'code_execution', code: codeOf(input), stdout: '', stderr: '', returnCode: undefined }
}

/** The session is leased here, while a refusal can still be an HTTP status (X-28). */
async function openSandbox(
  { image, execSeconds, container, leaseSeconds }: ToolOptions,
  { bus, log, files }: ToolUse,
  first: CallContext,
): Promise<OpenTool> {
  const wish = { image, execSeconds, container, leaseSeconds, files: files?.attached }
  const session = await openSandboxSession({ bus, log }, wish, first)

  return {
    async run(input, at) {
      const code = codeOf(input)
      if (code.trim() === '') return failed(input, 'code_execution needs "code", a string')
      try {
        const done = await session.execute(code, 'python', at)
        if (done.status !== 'ok') return failed(input, texts[done.reason])
        return ran(code, { ...done, files: await keptFiles(done.files, files, at) })
      } catch (thrown) {
        const cause = Fault.from(thrown)
        const text = textsOf[cause.failure]
        if (at.signal.aborted || text === undefined) throw cause
        return { ...failed(input, text), cause }
      }
    },
    container: session.container,
    close: session.close,
  }
}

/** What a run that came to nothing is to a client of ours: the failure, and its text. */
export const codeFailures: Record<Extract<SandboxRun, { status: 'failed' }>['reason'], [Failure, string]> = {
  unreachable: ['upstream', 'code_execution sandbox unreachable'],
  lost: ['upstream', 'code_execution sandbox was lost, and with it every variable and file'],
  timeout: ['timeout', 'code execution timed out'],
  busy: ['unavailable', 'code_execution sandbox temporarily unavailable. Retry later.'],
  refused: ['upstream', 'code execution failed'],
  unheld: [
    'unavailable',
    'code_execution container is no longer held for this request, and its run was stopped. Retry later.',
  ],
}

const texts = {
  unreachable: 'code_execution sandbox unreachable',
  lost: 'code_execution sandbox was lost, and with it every variable and file; the next run starts in a new one',
  timeout: 'code execution timed out',
  busy: 'code_execution sandbox temporarily unavailable',
  refused: 'code execution failed',
  unheld: 'code_execution container is no longer held for this request, so no more code runs in it',
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
  files: { name: string; file?: { id: string; mediaType?: string } | undefined }[]
}

type MadeFiles = Extract<SandboxRun, { status: 'ok' }>['files']

/** FI-21: what was stored of a run becomes the caller's own; what does not is named without an id (FI-22). */
export async function keptFiles(
  made: MadeFiles,
  files: ToolUse['files'],
  { tenancy }: Pick<CallContext, 'tenancy'>,
): Promise<MadeFiles> {
  const stored = made.flatMap(({ file }) => file ?? [])
  const kept = stored.length > 0 ? await files?.keep(stored, tenancy) : undefined
  return made.map(({ name, file }) => (file && kept?.has(file.id) ? { name, file } : { name }))
}

const shownFile = ({ name, file }: Run['files'][number]) => ({
  name,
  ...(file && { id: file.id, ...(file.mediaType !== undefined && { mediaType: file.mediaType }) }),
})

/** X-30: a run that came to its end, of a program that did not do what it should. */
export const programFailed = ({ stdout, stderr, returnCode }: Omit<Run, 'files'>): boolean =>
  returnCode !== 0 || (stdout === '' && stderr !== '')

/** A program that failed is still a completed run: it is shown whole, but reads and counts as an error (X-30). */
function ran(code: string, { stdout, stderr, returnCode, files }: Run): ToolResult {
  const isError = programFailed({ stdout, stderr, returnCode })
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
      shown: { kind: 'code_execution', code, stdout, stderr, returnCode, files: files.map(shownFile) },
    },
    ...served,
  }
}
