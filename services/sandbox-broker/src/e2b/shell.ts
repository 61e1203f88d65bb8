import type { CommandHandle, Sandbox } from 'e2b'
import type { CallLimits, ExecCall, Execution, Refusal } from '../provider.ts'
import type { Handle, Leases } from './leases.ts'

/** Beyond the grant, until the sandbox's own clock must have ended the command. */
const PATIENCE_MS = 8_000
const CALL_MS = 10_000
/** The vendor's client holds all that a command prints: one that prints more than this is ended. */
const MAX_OUTPUT_CHARACTERS = 4 * 1024 * 1024
const TIMED_OUT = 124
const KILLED = 137

/**
 * Runs a command line in the workspace. `timeout` in the sandbox ends it with all of its children (it leads their
 * process group), so that one whose caller is gone ends as well.
 */
export async function runCommand(
  leases: Leases,
  handle: Handle,
  cwd: string,
  { code, timeoutSeconds, onOutput }: ExecCall,
  limits: CallLimits,
): Promise<Execution | Refusal> {
  const began = Date.now()
  let printed = 0
  let group: number | undefined
  let isEnded = false

  const ran = await leases
    .use(handle, limits, timeoutSeconds * 1_000 + PATIENCE_MS, async (signal) => {
      const hear = (stream: 'stdout' | 'stderr') => (text: string) => {
        printed += text.length
        if (printed <= MAX_OUTPUT_CHARACTERS) onOutput?.({ stream, text })
        else if (group !== undefined && !isEnded) {
          isEnded = true
          endGroup(handle.sandbox, group)
        }
      }
      const command = await handle.sandbox.commands.run(
        `exec timeout --kill-after=1 ${timeoutSeconds} bash -c ${quoted(code)}`,
        { background: true, cwd, timeoutMs: 0, signal, onStdout: hear('stdout'), onStderr: hear('stderr') },
      )
      group = command.pid
      return outcome(command)
    })
    .catch((thrown: unknown) => {
      if (group !== undefined) endGroup(handle.sandbox, group)
      throw thrown
    })
  if (ran.status === 'failed') {
    if (group !== undefined && ran.reason !== 'lost') endGroup(handle.sandbox, group)
    return ran
  }

  const { stdout, stderr, exitCode } = ran.value
  const result = { status: 'ok' as const, stdout: stdout.toWellFormed(), files: [] }
  if (isEnded)
    return { ...result, stderr: noted(stderr, 'more than 4 MiB printed: the command was ended'), returnCode: KILLED }
  const isLate = (exitCode === TIMED_OUT || exitCode === KILLED) && Date.now() - began >= timeoutSeconds * 1_000
  if (!isLate) return { ...result, stderr: stderr.toWellFormed(), returnCode: exitCode }
  const note = `timed out after ${timeoutSeconds} s: variables and files are kept`
  return { ...result, stderr: noted(stderr, note), returnCode: TIMED_OUT, limit: 'time' }
}

/** A command that fails is thrown by the vendor's client; here it is an answer like any other (CP-13). */
async function outcome(command: CommandHandle): Promise<{ stdout: string; stderr: string; exitCode: number }> {
  try {
    return await command.wait()
  } catch (thrown) {
    if (!(thrown instanceof Error) || thrown.name !== 'CommandExitError') throw thrown
    const { stdout, stderr, exitCode = KILLED } = command
    return { stdout, stderr, exitCode }
  }
}

/** Nobody waits for it, and `timeout` ends the same processes when this does not. */
function endGroup(sandbox: Sandbox, group: number): void {
  void sandbox.commands
    .run(`kill -KILL -- -${group}`, { timeoutMs: CALL_MS, requestTimeoutMs: CALL_MS })
    .catch(() => {})
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const noted = (stderr: string, note: string): string =>
  `${stderr.toWellFormed()}${stderr === '' || stderr.endsWith('\n') ? '' : '\n'}${note}\n`
