import { availableParallelism } from 'node:os'
import { z } from 'zod'
import type { Channel } from './channel.ts'
import type { Call, Caller, CallResult } from './driver.ts'
import type { Line, LineAnswer } from './line.ts'

const count = z.int().nonnegative()
const ended = z.object({
  code: z.int(),
  stdout_bytes: count,
  stdout_dropped: count,
  stderr_dropped: count,
  files_bytes: count,
  ending: z.enum(['time', 'memory', 'processes', 'disk', 'cancelled']).nullable(),
  lost: z.string().nullable(),
})
const notTaken = z.object({ not_taken: z.literal(true) })
const supervisedAnswer = z.union([ended, notTaken])
const outputPart = z.object({ part: z.enum(['stdout', 'stderr']) })
const madeAnswer = z.object({ empty_since: z.string().regex(/^\d+$/).nullable() })

/** Beyond a call's own time: the grace to interrupt it, ending it, and a machine that is busy. */
const OVERTIME_MS = 10_000
/** How long a call is nobody's but the interpreter's, whose pipes hold what it writes until then. */
const SHORT_MS = 5
/** The same while the supervisor has not been needed yet. Its first steps copy the memory that it shares with others: that
 * takes longer than most calls do, even those that a busy machine makes wait. */
const UNROUSED_MS = 60
/** Both are longer where much shares the processors, up to this. */
const BUSY_MS = 500
/** For a look at a folder. */
const ANSWER_MS = 10_000
/** What short calls leave behind, threads and processes, is looked at this long after the first of them. */
const LOOK_MS = 500
/** For a call to end on its own in time, and for one of a client that left to begin. */
const SILENT_MS = 700
/** Changes that are nearer to each other may bear the same time: a tick of the slowest kernel, twice. */
const CLOCK_MS = 20

/** What the sessions of one zygote share. */
export interface Shared {
  /** Calls that nobody looks after yet but an interpreter, in all of them. */
  short: number
  /** Sessions that are being made, which takes more than most calls do. */
  readonly making: number
}

export interface Around {
  shared: Shared
  /** Has the zygote look at the session from outside; `stir` is called when more than an idle interpreter is there. */
  look(stir: () => void): void
}

interface Supervised {
  /** Undefined when the call has not begun yet, or has ended before the supervisor heard of it. */
  answer: Promise<CallResult | undefined>
  cancel(): void
}

/**
 * The calls of one session. Python is given to its interpreter directly, and to the supervisor's care when it takes longer
 * than a moment; commands, and what is to be heard while it is written, are the supervisor's from the beginning.
 */
export function openCalls(
  channel: Channel,
  line: Line,
  { shared, look }: Around,
): (call: Call, caller: Caller) => Promise<CallResult> {
  let number = 0
  let emptySince: bigint | undefined = line.emptySince
  let nextLook: NodeJS.Timeout | undefined
  let isRoused = false
  void channel.closed.then(() => clearTimeout(nextLook))

  const supervise = ({ kind, text, timeoutSeconds, onOutput }: Call, begun?: { isOverdue: boolean }): Supervised => {
    isRoused = true
    const isBegun = begun !== undefined
    const stream = onOutput !== undefined
    const asking = channel.ask(
      { op: kind, number, begun: isBegun, overdue: begun?.isOverdue ?? false, timeout: timeoutSeconds, stream },
      {
        body: isBegun ? [] : [Buffer.from(text)],
        timeoutMs: timeoutSeconds * 1_000 + OVERTIME_MS,
        ...(onOutput ? { onPart: ({ header, body }) => onOutput(outputPart.parse(header).part, body) } : {}),
      },
    )
    const of = channel.latest()
    return {
      answer: asking.then(({ header, body }) => {
        const answer = supervisedAnswer.parse(header)
        return 'not_taken' in answer ? undefined : resultOf(answer, body)
      }),
      cancel: () => channel.tell({ op: 'cancel', id: 0, of }),
    }
  }

  const supervised = async (call: Call, caller: Caller): Promise<CallResult> => {
    const { answer, cancel } = supervise(call)
    caller.onLeave(cancel)
    const result = await answer.finally(() => caller.onLeave(undefined))
    if (!result) throw new Error('the supervisor knows nothing of a call that it was given')
    return result
  }

  const short = async (call: Call, caller: Caller): Promise<CallResult> => {
    const began = Date.now()
    const ends = performance.now() + call.timeoutSeconds * 1_000
    /** When an interpreter that says nothing, and lets the supervisor take over nothing, is ended. */
    let overdue = ends + SILENT_MS
    let late: NodeJS.Timeout | undefined
    let care: Supervised | undefined
    const leave = countIn(shared)
    let pause = patience(isRoused ? SHORT_MS : UNROUSED_MS, shared)
    const result = await new Promise<LineAnswer | CallResult>((resolve, reject) => {
      const again = (answer: CallResult | undefined) => {
        if (answer) return resolve(answer)
        care = undefined
        pause *= 2
        late = setTimeout(takeOver, Math.max(SHORT_MS, Math.min(pause, overdue - performance.now())))
      }
      const takeOver = () => {
        if (care) return
        leave()
        clearTimeout(late)
        const now = performance.now()
        const timeoutSeconds = Math.max(0, ends - now) / 1_000
        care = supervise({ ...call, timeoutSeconds }, { isOverdue: now >= overdue })
        if (caller.hasLeft) care.cancel()
        care.answer.then(again, reject)
      }
      caller.onLeave(() => {
        overdue = Math.min(overdue, performance.now() + SILENT_MS)
        if (care) care.cancel()
        else takeOver()
      })
      late = setTimeout(takeOver, Math.min(pause, call.timeoutSeconds * 1_000))
      line.call(number, Buffer.from(call.text), resolve, takeOver)
    }).finally(() => {
      leave()
      clearTimeout(late)
      caller.onLeave(undefined)
      line.forget()
    })
    // the next call must not be taken for the one that is over
    await care?.answer
    clearTimeout(late)
    if (!('changed' in result)) return result
    nextLook ??= setTimeout(() => {
      nextLook = undefined
      look(stir)
    }, LOOK_MS).unref()
    const { code, stdout, stderr, changed } = result
    const isEmpty = changed === emptySince && began > Number(changed / 1_000_000n) + CLOCK_MS
    return { exitCode: code, stdout, stderr, ending: undefined, lost: undefined, files: isEmpty ? [] : await made() }
  }

  const stir = () => {
    isRoused = true
    channel.tell({ op: 'look', id: 0 })
  }

  /** Files that were made since the last look at them. */
  const made = async (): Promise<string[]> => {
    isRoused = true
    const { header, body } = await channel.ask({ op: 'made' }, { timeoutMs: ANSWER_MS })
    const since = madeAnswer.parse(header).empty_since
    emptySince = since === null ? undefined : BigInt(since)
    return namesOf(body)
  }

  return (call, caller) => {
    if (call.kind === 'shell') return supervised(call, caller)
    number += 1
    return line.isOpen && !call.onOutput ? short(call, caller) : supervised(call, caller)
  }
}

/** Counts one in; what it returns counts it out again, once. */
function countIn(shared: Shared): () => void {
  let isIn = true
  shared.short += 1
  return () => {
    if (isIn) shared.short -= 1
    isIn = false
  }
}

/** A call beside others that share the processors takes longer, without being a long one. */
function patience(ms: number, { short, making }: Shared): number {
  return Math.max(ms, Math.min(BUSY_MS, (ms * (short + making)) / availableParallelism()))
}

function resultOf(header: z.output<typeof ended>, body: Buffer): CallResult {
  const files = body.length - header.files_bytes
  return {
    stdout: { bytes: body.subarray(0, header.stdout_bytes), dropped: header.stdout_dropped },
    stderr: { bytes: body.subarray(header.stdout_bytes, files), dropped: header.stderr_dropped },
    exitCode: header.code,
    ending: header.ending ?? undefined,
    lost: header.lost ?? undefined,
    files: namesOf(body.subarray(files)),
  }
}

const namesOf = (joined: Buffer): string[] => (joined.length === 0 ? [] : joined.toString('utf8').split('\0'))
