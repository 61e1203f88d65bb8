import type { CallResult, Captured, Ending } from './drivers/driver.ts'
import type { EditorResult } from './editor.ts'

/** The payload of a result block (CP-10), and how the call is counted. */
export interface ProgramResult {
  outcome: 'ok' | 'failed' | Ending
  content: {
    type: 'code_execution_result'
    stdout: string
    stderr: string
    return_code: number
    content: { type: 'code_execution_output'; file_id: string; filename: string }[]
    /** Ours: which limit ended the call. */
    ended_by?: Ending
  }
}

export function ofCall(result: CallResult, timeoutSeconds: number): ProgramResult {
  const { ending, lost, exitCode } = result
  const note = ending || lost ? `[${whatEnded(ending, lost, timeoutSeconds)}; ${whatIsKept(lost)}]\n` : ''
  const stderr = textOf(result.stderr)
  return {
    outcome: ending ?? (exitCode === 0 ? 'ok' : 'failed'),
    content: {
      type: 'code_execution_result',
      stdout: textOf(result.stdout),
      stderr: stderr && note && !stderr.endsWith('\n') ? `${stderr}\n${note}` : stderr + note,
      return_code: exitCode,
      // a path is all it takes to fetch one: the id is the name
      content: result.files.map((path) => ({ type: 'code_execution_output', file_id: path, filename: path })),
      ...(ending ? { ended_by: ending } : {}),
    },
  }
}

export function ofEditor(result: EditorResult): ProgramResult {
  return {
    outcome: result.ok ? 'ok' : 'failed',
    content: {
      type: 'code_execution_result',
      stdout: result.ok ? result.stdout : '',
      stderr: result.ok ? '' : `${result.why}\n`,
      return_code: result.ok ? 0 : 1,
      content: [],
    },
  }
}

function whatEnded(ending: Ending | undefined, lost: string | undefined, timeoutSeconds: number): string {
  switch (ending) {
    case 'time':
      return `timed out after ${timeoutSeconds} s${lost ? ' and did not stop when interrupted' : ', interrupted'}`
    case 'memory':
      return 'the session used more memory than it may; its processes were ended'
    case 'processes':
      return 'the session had more processes than it may; they were ended'
    case 'disk':
      return 'the session filled more disk than it may; its processes were ended'
    case 'cancelled':
      return 'cancelled'
    case undefined:
      return lost ?? ''
    default:
      return ending satisfies never
  }
}

const whatIsKept = (lost: string | undefined): string =>
  lost ? 'variables and imports are lost, files are kept' : 'variables and files are kept'

/** Valid UTF-8 whatever the program wrote; a cut never leaves half a character behind (BR-124). */
function textOf({ bytes, dropped }: Captured): string {
  if (dropped === 0) return bytes.toString('utf8')
  const whole = bytes.subarray(0, bytes.length - brokenTail(bytes))
  return `${whole.toString('utf8')}\n[output cut: ${dropped + bytes.length - whole.length} more bytes]`
}

/** How many of the last bytes begin a character whose end was cut off. */
function brokenTail(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] as number
    if (byte < 0x80) return 0
    if (byte < 0xc0) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return length > back ? back : 0
  }
  return 0
}
