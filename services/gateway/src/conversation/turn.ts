import type { DeclaredServers } from '../mcp-client/declared.ts'

/** A client dialect, and equally a wire that model providers speak. */
export type Dialect = 'chat' | 'messages' | 'responses'
export type Wire = 'openai-chat' | 'openai-responses' | 'anthropic' | 'gemini' | 'demo'

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }
export type JsonObject = { [name: string]: Json }

/**
 * What a client asked, in no dialect's terms. Nothing is lost: each message and tool keeps the wire form it came in
 * (`raw`), so that a provider of the same dialect gets it unchanged, unknown members included.
 */
export interface Turn {
  dialect: Dialect
  /** The selector as the client wrote it, `provider:model`. */
  model: string
  stream: boolean
  /** Chat's `stream_options.include_usage`; true where the dialect always reports. */
  includeUsage: boolean
  messages: Message[]
  tools: ToolEntry[]
  toolChoice: ToolChoice | undefined
  /** Undefined: the client did not say. */
  parallelToolCalls: boolean | undefined
  maxOutputTokens: number | undefined
  temperature: number | undefined
  topP: number | undefined
  stop: string[] | undefined
  /** The client's name for its user (`user`, `metadata.user_id`). */
  user: string | undefined
  /** Rounds of the whole request, 1..25 (L-05). */
  maxToolIterations: number
  /** Calls of gateway-run tools in the whole request, where the client set a limit of its own. */
  maxToolCalls?: number
  toolsHeader: string | undefined
  /** Tools that the conversation's searches have found; absent where the dialect has no search or none is declared. */
  foundTools?: FoundTools
  /** MCP servers whose tools run here; absent where the request names none. */
  mcpServers?: DeclaredServers
  /** The whole body as received, gateway-owned members removed (T-26). */
  raw: JsonObject
  /** Headers that belong to the dialect, for a provider that speaks it. */
  headers?: Readonly<Record<string, string>>
  /** Length of the body in characters: the reservation's estimate is made from it. */
  bodyCharacters: number
}

export interface FoundTools {
  /** By a search that this gateway ran. */
  byGateway: ReadonlySet<string>
  byAnyone: ReadonlySet<string>
}

export interface Message {
  role: 'system' | 'user' | 'assistant' | 'tool'
  parts: Part[]
  /**
   * The message in the wire form of `dialect`; absent on messages the gateway made. For `responses` the value is
   * `{ items: […] }`, the items that it came in, and `{ role: 'system', content }` where it stands for `instructions`.
   */
  raw?: { dialect: Dialect; value: JsonObject }
}

export type Part =
  | { type: 'text'; text: string }
  /** `detail`: how closely it is to be looked at, in OpenAI's words. */
  | { type: 'image'; url: string; mediaType?: string; detail?: string }
  /** `issuer`: the one provider it may be sent back to, as `issuerOf` names it; whoever was asked when absent. */
  | { type: 'thinking'; text: string; signature?: string; issuer?: string }
  | { type: 'redacted_thinking'; data: string; issuer?: string }
  /**
   * A file of this gateway's store. Its content stands in its place before any provider sees the message; of one that is
   * `forCode` the model only hears, where code runs that is given it (FI-14).
   */
  | { type: 'file'; id: string; forCode?: boolean }
  /** `builtin`: it is a call of a `builtin_function` (PE-13). */
  | { type: 'call'; id: string; name: string; arguments: string; builtin?: true }
  /** `name`: the tool's, where the upstream is to be told it (PE-12). */
  | { type: 'result'; callId: string; text: string; isError: boolean; name?: string }
  /** Something only its own dialect knows; another dialect refuses it with a 400 that names `kind`. */
  | { type: 'other'; dialect: Dialect; kind: string; raw: Json }

/** An entry of `tools`, in request order. */
export type ToolEntry =
  | { kind: 'function'; name: string; description: string | undefined; parameters: Json | undefined; raw: JsonObject }
  /** Any other type: `otari_*`, a provider keyword, or one nobody here knows. `wire`: `raw` is in that wire's own words. */
  | { kind: 'typed'; type: string; raw: JsonObject; wire?: Wire }

export type ToolChoice =
  | { type: 'auto' | 'none' | 'required' }
  | { type: 'function'; name: string }
  /** Names a declared type, such as `{"type":"otari_web_search"}` (T-27). */
  | { type: 'typed'; name: string; raw: JsonObject }

/** What is sent to one upstream in one round: the turn as planned for this attempt plus what the loop appended. */
export interface ModelRequest {
  turn: Turn
  /** The upstream's own name for the model. */
  model: string
  /** The turn's messages with hints inserted, then what earlier rounds added. */
  messages: Message[]
  /** Entries to offer, in order: forwarded ones keep their raw form. */
  tools: ToolEntry[]
  toolChoice: ToolChoice | undefined
  parallelToolCalls: boolean | undefined
  /** Ask the upstream to stream; what it sends becomes the same events either way. */
  stream: boolean
}
