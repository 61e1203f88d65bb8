/** JSON as it stands in a request. */
export type FakeJson = Record<string, unknown>

/** One thing a scripted model says. */
export type Said =
  /** `annotations`: in the vendor's own form, where it has such. */
  | { text: string; annotations?: FakeJson[] }
  | { thinking: string; signature?: string }
  | { redacted: string }
  /** `text`: the arguments as they are spelled; `type`: what the vendor calls the call, where that is no `function`. */
  | { call: { id: string; name: string; input: FakeJson; text?: string; type?: string } }

/** A proper answer, rendered as the vendor would, streamed or not as the request asks. */
export interface ScriptedAnswer {
  says: Said[]
  /** What a vendor ran by itself before that, in its own form, with what it tells of it on the way. */
  native?: { item: FakeJson; events?: FakeJson[] }[]
  /** The vendor's own word for why it stopped; what fits when absent. */
  finish?: string
  /** Members of `usage`; a small fixed count when absent, none at all when null. */
  usage?: FakeJson | null
  /** Characters of a streamed piece. */
  piece?: number
}

/** Bytes that are sent as they are, proper or not. */
export interface RawAnswer {
  status?: number
  headers?: Record<string, string>
  body: string | Buffer
}

/** How an answer is delivered; a proper server does none of this. */
export interface Delivery {
  /** Before the status line. */
  delayMs?: number
  /** Each byte in a write of its own. */
  byteByByte?: boolean
  /** The connection is torn down after so many bytes of the body. */
  cutAfterBytes?: number
  /** Nothing is sent after so many bytes, and the connection stays open until the client leaves. */
  stallAfterBytes?: number
}

export type ScriptedReply = (ScriptedAnswer | RawAnswer) & Delivery

/** What the model answers: round by round, or from the request. A request past the last round is an error of the test. */
export type ModelScript = ScriptedReply[] | ((body: FakeJson, round: number) => ScriptedReply)

export const says = (text: string, more: Omit<ScriptedAnswer, 'says'> & Delivery = {}): ScriptedReply => ({
  says: [{ text }],
  ...more,
})

let callCount = 0

/** A turn that calls tools; ids are made up, and no two alike. */
export const callsTools = (
  calls: { name: string; input: FakeJson; id?: string; text?: string; type?: string }[],
  more: Omit<ScriptedAnswer, 'says'> & Delivery & { first?: Said[] } = {},
): ScriptedReply => {
  const { first = [], ...rest } = more
  return {
    says: [...first, ...calls.map((call) => ({ call: { ...call, id: call.id ?? `call_${++callCount}` } }))],
    ...rest,
  }
}

/** The text in pieces, never between the halves of a character. */
export function piecesOf(text: string, size: number): string[] {
  const characters = Array.from(text)
  const pieces: string[] = []
  for (let at = 0; at < characters.length; at += size) pieces.push(characters.slice(at, at + size).join(''))
  return pieces
}
