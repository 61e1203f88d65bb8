import { type Msg, type MsgHdrs, MsgHdrsImpl } from 'nats'
import { z } from 'zod'
import { textOf } from './frames.ts'
import { nobodyListens } from './nats-inbox.ts'
import type { Link } from './nats-link.ts'
import type { Carrier } from './tracing.ts'

/** How long a server may take to say that it stored a message, before it is sent again. */
const ACK_MS = 2_000
const BACKOFF_MS = 100
const BACKOFF_MOST_MS = 2_000

export interface Publishing {
  link: Link
  subject: string
  /** Where the server answers. */
  reply: string
  /** With the message's id in it, by which the server knows it again. */
  headers: Carrier
  body: Uint8Array
  /** It must not run twice: once it may have been stored, it is not sent in another connection. */
  once?: boolean
  /** Makes sure that the stream is there. */
  prepare(): Promise<void>
}

const answer = z.object({
  stream: z.string(),
  error: z
    .object({ code: z.number(), err_code: z.number().optional(), description: z.string().default('no reason given') })
    .optional(),
})

/**
 * One message on its way into a stream: sent again under the same id, ever more slowly, until the server says that it
 * has it. A publish that was under way when a server went down is not answered, though it may have been stored.
 */
export class Publication {
  stored = false
  /** What the server said last, for whoever has to give up. */
  trouble = 'the server did not answer'
  private readonly job: Publishing
  private readonly headers: MsgHdrs
  private tries = 0
  private notBefore = 0
  private sentIn = 0

  constructor(job: Publishing) {
    this.job = job
    this.headers = MsgHdrsImpl.fromRecord(job.headers)
  }

  /** Sends it if it is time to. */
  tick(now: number): void {
    if (this.stored) return
    const { link, subject, reply, body } = this.job
    const elsewhere = this.sentIn !== 0 && this.sentIn !== link.generation
    if (elsewhere && this.job.once) return
    // the answer to what was sent in an earlier connection will not come
    if ((now < this.notBefore && !elsewhere) || !link.publish(subject, body, { reply, headers: this.headers })) return
    this.sentIn = link.generation
    this.notBefore = now + ACK_MS
  }

  /** Takes what the server says; `full` when the stream has no room for it. */
  take(message: Msg): 'full' | undefined {
    if (this.stored) return undefined
    if (nobodyListens(message)) {
      this.prepare()
      return undefined
    }
    const { error } = answer.parse(JSON.parse(textOf(message.data)))
    // a refusal has a sequence number too: 0
    if (!error) {
      this.stored = true
      return undefined
    }
    this.trouble = error.description
    this.again()
    return error.err_code === STREAM_STORE_FAILED && error.description.startsWith('maximum') ? 'full' : undefined
  }

  /** It must be stored once more: a queue in memory is lost with its server. */
  restart(): void {
    this.stored = false
    this.tries = 0
    this.notBefore = 0
  }

  private prepare(): void {
    this.notBefore = Number.POSITIVE_INFINITY
    this.job.prepare().then(
      () => {
        this.notBefore = 0
      },
      (error: unknown) => {
        this.trouble = error instanceof Error ? error.message : 'the stream is not there'
        this.again()
      },
    )
  }

  private again(): void {
    const wait = Math.min(BACKOFF_MS * 2 ** this.tries++, BACKOFF_MOST_MS)
    this.notBefore = Date.now() + wait * (0.5 + Math.random() / 2)
  }
}

/** JetStream's number for a message that its stream could not take. */
const STREAM_STORE_FAILED = 10077
