import { Fault } from '@tollgate/contracts'
import { faultFromJson, silent } from './faults.ts'
import { REPLY_BYTES } from './limits.ts'

/**
 * A reply is a run of frames on the caller's inbox: any number of beats, events and parts of the body, then one `end`
 * with the rest of the body or one failure: `error` is the handler's own, `refused` means that it was not started,
 * `interrupted` that its worker stopped before it was done.
 */
const frameKinds = ['beat', 'event', 'part', 'end', 'error', 'refused', 'interrupted'] as const
export type FrameKind = (typeof frameKinds)[number]
const kinds: ReadonlySet<string> = new Set(frameKinds)

/** As sent: a line `<kind> <attempt> <count>`, then the body. Small, since there is one for every call. */
export const frame = (kind: FrameKind, attempt: number, body = '', count = 0): Buffer =>
  Buffer.from(`${kind} ${attempt} ${count}\n${body}`)

/** Well below the 1 MB that a NATS server takes in one message unless told otherwise. */
const PART_BYTES = 256 * 1024

/** A whole body: one frame if it is small, else parts that the last frame counts. */
export function* bodyFrames(attempt: number, json: string): Generator<Buffer> {
  if (json.length * 3 <= PART_BYTES) {
    yield frame('end', attempt, json)
    return
  }
  const bytes = Buffer.from(json)
  const head = (kind: FrameKind, count: number) => Buffer.from(`${kind} ${attempt} ${count}\n`)
  let parts = 0
  let at = 0
  for (; bytes.length - at > PART_BYTES; at += PART_BYTES, parts++) {
    yield Buffer.concat([head('part', parts), bytes.subarray(at, at + PART_BYTES)])
  }
  yield Buffer.concat([head('end', parts), bytes.subarray(at)])
}

export interface Frame {
  kind: FrameKind
  attempt: number
  count: number
  body: Uint8Array
}

export function readFrame(data: Uint8Array): Frame {
  const line = data.indexOf(0x0a)
  const [kind = '', attempt, count] = textOf(data.subarray(0, Math.max(0, line))).split(' ')
  if (line < 0 || !kinds.has(kind)) throw new Fault('internal', 'something went wrong on our side')
  return { kind: kind as FrameKind, attempt: Number(attempt), count: Number(count), body: data.subarray(line + 1) }
}

export const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()

/** `again` says who may send the call once more: anybody (it has not run), those that may run twice, or nobody. */
export type Outcome = { json: string } | { fault: Fault; again: 'always' | 'idempotent' | 'never' }

/** Gathers one reply. A worker that took over from a dead one starts the body again, so frames of an older attempt are dropped. */
export class Reply {
  /** The latest attempt heard of; 0 until a worker has said anything. */
  attempt = 0
  private parts: Uint8Array[] = []
  private bytes = 0
  private readonly onEvent: ((json: string) => void) | undefined

  constructor(onEvent: ((json: string) => void) | undefined) {
    this.onEvent = onEvent
  }

  /** The outcome once the last frame is in, nothing before that. */
  take({ kind, attempt, count, body }: Frame): Outcome | undefined {
    if (attempt < this.attempt) return undefined
    if (attempt > this.attempt) this.begin(attempt)
    switch (kind) {
      case 'beat':
        return undefined
      case 'event':
        this.onEvent?.(textOf(body))
        return undefined
      case 'part':
        // a worker that was cut off begins its answer anew
        if (count === 0) this.begin(attempt)
        return this.add(body)
      case 'error':
        return { fault: faultFromJson(textOf(body)), again: 'never' }
      case 'refused':
        return { fault: faultFromJson(textOf(body)), again: 'always' }
      case 'interrupted':
        return { fault: faultFromJson(textOf(body)), again: 'idempotent' }
      case 'end':
        if (count === 0) return { json: textOf(body) }
        if (count !== this.parts.length) return { fault: silent('a part of a reply'), again: 'idempotent' }
        return this.add(body) ?? { json: Buffer.concat(this.parts).toString() }
      default:
        return kind satisfies never
    }
  }

  private begin(attempt: number): void {
    this.attempt = attempt
    this.parts = []
    this.bytes = 0
  }

  private add(part: Uint8Array): Outcome | undefined {
    this.parts.push(part)
    this.bytes += part.length
    if (this.bytes <= REPLY_BYTES) return undefined
    return { fault: new Fault('too_large', `the result is larger than ${REPLY_BYTES / 1024} KiB`), again: 'never' }
  }
}
