import type { Bus } from '@tollgate/bus'
import type { containerWish, DomainPolicy, HeldContainer, PriceKey, Tenancy } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { z } from 'zod'
import type { ShownFailure, ToolOutcome } from '../conversation/events.ts'
import type { JsonObject } from '../conversation/turn.ts'
import type { ToolFiles } from '../files/tool-files.ts'
import type { GatewaySettings } from '../settings.ts'
import type { Capabilities } from './capabilities.ts'
import type { SearchedTool } from './tool-search-index.ts'

/** A tool as the loop knows it: what the model is shown, and how a call is carried out. */
export interface Tool {
  /** The function's name, as the model sees it whatever type the client declared (T-13). */
  name: string
  description: string
  /** JSON Schema of the function's arguments. */
  parameters: JsonObject
  /** The MCP server that has it, by its name in the request. */
  server?: string
  /** Rows that would price a call, first match wins (P-06, P-16). */
  priceKeys(capabilities: Capabilities): PriceKey[]
  /** The arguments as they may be shown to anyone: no query string of a fetched address, say (F-33). */
  shownInput(input: JsonObject): JsonObject
  /** What a client may be shown of a call that failed. */
  shownFailure(input: JsonObject, failure: ShownFailure): ToolOutcome['shown']
  /** Gets it ready for one request. It is closed again on every exit. */
  open(options: ToolOptions, use: ToolUse, at: CallContext): Promise<OpenTool>
}

/**
 * A tool of this gateway's own, and what a declaration of it may say. A new one is a file with such an object and a line
 * in the registry.
 */
export interface BuiltIn extends Tool {
  /** The type by which a client declares it. */
  type: string
  /** What the model is told it is for when the declaration says nothing (T-30). */
  hint(settings: GatewaySettings): string
  available(capabilities: Capabilities): boolean
  /** Every type a request may declare it by on this deployment (T-12). */
  acceptedTypes(capabilities: Capabilities): string[]
  /** Why a request that declares it is refused where it is not available. */
  unavailable: string
  /** Reads a declaration of its own type, or a provider's keyword it stands in for; throws `invalid_request`. */
  read(declaration: Declaration, capabilities: Capabilities): ToolOptions
}

/** An entry of `tools`, twice: as parsed, and with each number as it was spelled, so that 5.0 is told from 5 (S-19). */
export interface Declaration {
  entry: JsonObject
  spelled: JsonObject
}

/** What a declaration asks of its tool; what a tool has no use for stays empty. */
export interface ToolOptions {
  hint: string | undefined
  maxUses: number | undefined
  maxResults: number | undefined
  domains: DomainPolicy
  providerOptions: JsonObject
  /** The image of its sandbox, and seconds granted to each run (W-22). */
  image: string | undefined
  execSeconds: number | undefined
  /** The sandbox that outlives the request (C-03), and how long the request may need it (CP-24). */
  container: z.input<typeof containerWish> | undefined
  leaseSeconds: number | undefined
}

export const noOptions: ToolOptions = {
  hint: undefined,
  maxUses: undefined,
  maxResults: undefined,
  domains: { allowedDomains: null, blockedDomains: [] },
  providerOptions: {},
  image: undefined,
  execSeconds: undefined,
  container: undefined,
  leaseSeconds: undefined,
}

/** What a request's tools share. */
export interface ToolUse {
  bus: Bus
  log: Log
  settings: GatewaySettings
  capabilities: Capabilities
  webCalls: WebCalls
  /** Undefined where files are switched off: code then runs without them (FI-25). */
  files?: ToolFiles
}

/** The allowance that searches and fetches of one request share (L-20). */
export interface WebCalls {
  /** Counts an attempted call. Gives the text of a refusal past the limit, or ends the request where L-22 says so. */
  take(tool: 'web search' | 'web fetch'): string | undefined
}

export interface CallContext {
  tenancy: Tenancy
  /** Fires when the client left and when the request's time is up. */
  signal: AbortSignal
  /** Epoch milliseconds by which the whole request ends. */
  deadline: number
  /** Of a model whose backend searches only in a completion of its own (PE-38). */
  nested?: NestedSearch | undefined
  /** Tools of the request that its model may search for. */
  deferred?: readonly SearchedTool[] | undefined
}

/** One more completion at the seat that answers, whose only tool is its backend's search. */
export interface NestedSearch {
  /** The backend's name for the tool. */
  name: string
  /** Resolves with the text of the answer; rejects as a model call does. */
  search(query: string): Promise<string>
}

/** A tool during one request; what it keeps between calls lives and ends with it. */
export interface OpenTool {
  /** A failure is an outcome for the model. What it throws ends the request when it is a refusal, else reads L-14's text. */
  run(input: JsonObject, at: CallContext): Promise<ToolResult>
  /** The sandbox that outlives the request, as long as there is one. */
  container?(): HeldContainer | undefined
  /** `discard`: nobody was told of a sandbox that is kept, so a new one is not (C-29). Gives the one that is kept. */
  close?(options?: { discard?: boolean }): Promise<HeldContainer | undefined>
}

export interface ToolResult {
  outcome: ToolOutcome
  /** Who served it, and what prices it (P-20). */
  label: string
  priceKeys: PriceKey[]
  /** Decimal dollars, when a provider reported its charge. */
  reportedCost?: string | undefined
  /** What really went wrong, for the log; the outcome tells nothing of it. */
  cause?: unknown
}
