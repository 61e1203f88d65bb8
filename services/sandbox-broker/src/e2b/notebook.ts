import { z } from 'zod'
import type { ExecCall } from '../provider.ts'

/** Pictures that one call may leave behind as files, and the bytes of one. */
const MAX_FIGURES = 10
const MAX_FIGURE_BYTES = 8 * 1024 * 1024
/** Kept of each stream; the broker shows less of it and says that it was cut. */
const MAX_STREAM_CHARACTERS = 1024 * 1024

export interface Figure {
  extension: string
  bytes: Buffer
}

/** CP-30: what is no string becomes one, and lone surrogates become U+FFFD. */
const text = z.unknown().transform((value) => {
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.map(String).join('\n').toWellFormed()
  return (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed()
})
const picture = z.string().optional().catch(undefined)

/** One line of the interpreter's answer. Kinds that are not known say nothing about the result, and are passed over. */
const message = z.union([
  z.object({ type: z.enum(['stdout', 'stderr']), text }),
  z.object({
    type: z.literal('result'),
    is_main_result: z.boolean().optional().catch(undefined),
    text: z.unknown(),
    png: picture,
    jpeg: picture,
    svg: picture,
    pdf: picture,
  }),
  z.object({ type: z.literal('error'), name: text, value: text, traceback: text }),
  z.object({ type: z.enum(['number_of_executions', 'end_of_execution', 'unexpected_end_of_execution']) }),
])
const anyMessage = z.looseObject({ type: z.string() })

/** What the interpreter calls it when it went away under the code. */
const GONE = new Set(['ContextRestarting', 'UnexpectedEndOfExecution'])

export const VARIABLES_LOST = 'variables and imports are lost, files are kept'

/** Gathers one call's answer line by line; output is passed on as it comes (BR-124). */
export function openNotebook(onOutput: ExecCall['onOutput']) {
  const streams = { stdout: '', stderr: '' }
  const figures: Figure[] = []
  let returnCode = 0
  let isSound = false
  let hasEnded = false

  const write = (stream: 'stdout' | 'stderr', piece: string) => {
    const room = MAX_STREAM_CHARACTERS - streams[stream].length
    const kept = piece.length > room ? piece.slice(0, Math.max(0, room)).toWellFormed() : piece
    if (kept === '') return
    streams[stream] += kept
    onOutput?.({ stream, text: kept })
  }
  const fail = (note: string) => {
    returnCode = 1
    if (note !== '') write('stderr', note.endsWith('\n') ? note : `${note}\n`)
  }

  return {
    /** False: not what this interface says, so nothing that came of it may be believed. */
    take(line: string): boolean {
      if (line.trim() === '') return true
      const parsed = parse(line)
      if (parsed === undefined) return false
      switch (parsed.type) {
        case 'stdout':
        case 'stderr':
          write(parsed.type, parsed.text)
          break
        case 'result':
          for (const figure of figuresOf(parsed).slice(0, MAX_FIGURES - figures.length)) figures.push(figure)
          if (parsed.is_main_result && typeof parsed.text === 'string')
            write('stdout', `${parsed.text.toWellFormed()}\n`)
          break
        case 'error':
          fail(plain(parsed.traceback) || `${parsed.name}: ${parsed.value}`)
          if (GONE.has(parsed.name)) fail(`the interpreter ended: ${VARIABLES_LOST}`)
          break
        case 'unexpected_end_of_execution':
          if (!hasEnded) fail(`the interpreter ended: ${VARIABLES_LOST}`)
          break
        case 'number_of_executions':
        case 'end_of_execution':
          break
        case 'other':
          return true
        default:
          return parsed satisfies never
      }
      hasEnded ||= parsed.type === 'error' && GONE.has(parsed.name)
      isSound = true
      return true
    },
    /** Whether anything was said at all: an answer without a word is no success. */
    get isSound() {
      return isSound
    },
    note: (text: string) =>
      write('stderr', `${streams.stderr === '' || streams.stderr.endsWith('\n') ? '' : '\n'}${text}\n`),
    figures,
    result: () => ({ status: 'ok' as const, ...streams, returnCode }),
  }
}

type Message = z.output<typeof message> | { type: 'other' }

function parse(line: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(line)
    const known = message.safeParse(value)
    if (known.success) return known.data
    const { success, data } = anyMessage.safeParse(value)
    return success && !KINDS.has(data.type) ? { type: 'other' } : undefined
  } catch {
    return undefined
  }
}

const KINDS = new Set([
  'stdout',
  'stderr',
  'result',
  'error',
  'number_of_executions',
  'end_of_execution',
  'unexpected_end_of_execution',
])

/** One picture in several forms is one picture: the first that browsers show. */
function figuresOf(result: Extract<Message, { type: 'result' }>): Figure[] {
  const { png, jpeg, svg, pdf } = result
  const [extension, bytes] = png
    ? ['png', Buffer.from(png, 'base64')]
    : jpeg
      ? ['jpg', Buffer.from(jpeg, 'base64')]
      : svg
        ? ['svg', Buffer.from(svg)]
        : ['pdf', Buffer.from(pdf ?? '', 'base64')]
  return bytes.length === 0 || bytes.length > MAX_FIGURE_BYTES ? [] : [{ extension, bytes }]
}

/** Tracebacks come coloured for a terminal. */
const plain = (text: string): string => text.replaceAll(ESCAPES, '')
const ESCAPES = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, 'g')
