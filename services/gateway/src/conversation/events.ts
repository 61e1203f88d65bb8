import type { HeldContainer, TokenCounts } from '@tollgate/contracts'
import type { Dialect, JsonObject } from './turn.ts'

/**
 * Everything a model says is one stream of these, whatever the provider, the dialect and the `stream` flag. A
 * non-streaming answer is the same stream in one burst, and is collected again for a non-streaming client.
 *
 * Order: `start`, then blocks (`open` -> any `delta`s -> `close`, each index once, blocks may interleave only by index),
 * then `usage` (once, when the upstream reported any), then `finish`. Nothing follows `finish`. A stream that breaks off
 * throws from the generator; a stream that ends without `finish` is a failure of the upstream (BR-018).
 */
export type ModelEvent =
  | {
      type: 'start'
      id: string | undefined
      created: number | undefined
      model: string | undefined
      /** The instance that answers, said by the loop. */
      provider?: string
      extra?: JsonObject
      /** What the upstream has counted so far: should its answer break off, nobody tells more (BR-139). */
      tokens?: TokenCounts
      /** The envelope as its upstream began it, for clients of that upstream's dialect. */
      raw?: Raw
    }
  /** `raw`: the block as its upstream began it, without what its deltas say; for clients of that upstream's dialect. */
  | { type: 'open'; index: number; block: BlockStart; raw?: Raw }
  | { type: 'delta'; index: number; text: string }
  /** A thinking block's signature, whole. */
  | { type: 'signature'; index: number; signature: string }
  /** `raw`: with the last block of an item of its upstream's, that item as it ended, for clients of that upstream's dialect. */
  | { type: 'close'; index: number; raw?: Raw }
  /** Members only the upstream's own dialect has a place for, in that dialect's shape: rendered there, dropped elsewhere. */
  | { type: 'extra'; dialect: Dialect; value: JsonObject }
  | { type: 'usage'; tokens: TokenCounts; raw: Raw | undefined }
  | { type: 'finish'; reason: FinishReason; raw: string | undefined }

/** Something in the wire form of `dialect`. */
export interface Raw {
  dialect: Dialect
  value: JsonObject
}

/** A block's deltas are its text, its thinking, or its arguments as JSON text, by kind. */
export type BlockStart =
  | { kind: 'text' }
  | { kind: 'refusal' }
  | { kind: 'thinking' }
  | { kind: 'redacted_thinking'; data: string }
  /** Opened only once id and name are known (BR-007). */
  /** `builtin`: its upstream called it a `builtin_function`, which the backend runs (PE-13). */
  | { kind: 'call'; id: string; name: string; builtin?: true }
  /** A block only `dialect` knows, whole. */
  | { kind: 'other'; dialect: Dialect; value: JsonObject }

export type FinishReason = 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'pause' | 'unknown'

/** What the gateway itself did between rounds, on its way to the dialect. */
export type ToolActivity = {
  type: 'tool'
  phase: 'started' | 'finished'
  /** `server`: the MCP server that has the tool, by its name in the request. `byProvider`: the model's backend runs it. */
  call: { id: string; tool: string; input: JsonObject; server?: string; byProvider?: true }
  /** Present when finished. */
  outcome?: ToolOutcome
}

/** What a gateway-run tool came back with. */
export interface ToolOutcome {
  /** What the model reads; a failed one begins `[tool error]`. */
  text: string
  isError: boolean
  /** What the client may be shown: data, not wire form; the dialect renders it. */
  shown:
    | {
        kind: 'web_search'
        query: string
        sources: { url: string; title: string; date?: string }[]
        failure?: ShownFailure
      }
    /** Null: an address that is unsafe or no address at all, which is never echoed. */
    | { kind: 'web_fetch'; url: string | null; document?: ShownDocument; failure?: ShownFailure }
    | {
        kind: 'code_execution'
        code: string
        stdout: string
        stderr: string
        /** Undefined: the sandbox never answered. */
        returnCode: number | undefined
        /** Files the run made; those without an id were not stored. */
        files?: { name: string; id?: string; mediaType?: string }[]
      }
    /** What a tool of an MCP server said, without addresses and, when it failed, without a word of the server's (M-21). */
    | { kind: 'mcp'; text: string }
    /** A search among the request's own tools: the names it found. */
    | { kind: 'tool_search'; found: string[]; failure?: ShownFailure }
    /** Run by the model's backend: its results never reach us. `query`: where the arguments have one. */
    | {
        kind: 'provider_tool'
        name: string
        search: boolean
        query?: string
        resultTokens?: number
        failure?: ShownFailure
      }
}
/** A fetched page, for dialects that show what was read. */
export interface ShownDocument {
  text: string
  title?: string
  /** ISO 8601. */
  retrievedAt: string
}
export interface ShownFailure {
  tag: string
  httpStatus?: number
  /** Refused by the declaration's own `max_uses`, and not by the allowance that tools share. */
  overMaxUses?: true
}

/**
 * The sandbox that outlives the request (C-04). In a stream it comes before the first event of a model, so that headers can
 * still name it (C-06); in a whole answer before `finish`, as it is then (C-11).
 */
export type ContainerEvent = { type: 'container'; container: HeldContainer }

/** What a dialect renders: the model's events of all rounds as one answer, with the gateway's own activity between. */
export type AnswerEvent = ModelEvent | ToolActivity | ContainerEvent
