import type { ModelEvent } from '../conversation/events.ts'
import type { Tell } from '../conversation/tell.ts'
import type { Dialect, ModelRequest, Turn, Wire } from '../conversation/turn.ts'
import type { ByteSink, Forwarded } from './forward.ts'
import type { ProviderFiles } from './provider-files.ts'

/** How long one model call may take, and who may end it sooner. */
export interface CallLimits {
  /** Aborting it closes the connection to the provider. */
  signal: AbortSignal
  /** Epoch milliseconds by which the answer must be complete. */
  deadline: number
}

/** Paths of OpenAI's API whose bodies pass through (see `relay`). */
export type RelayedPath = '/embeddings' | '/moderations'

/** A model as its provider lists it, with what is said of it. */
export interface DiscoveredModel {
  model: string
  /** Epoch seconds; undefined where the provider does not say. */
  created?: number
  contextTokens?: number
}

/** One configured instance of a model provider, whatever wire it speaks. */
export interface ModelProvider {
  /** The instance's name: what stands before the colon of a selector. */
  readonly name: string
  readonly wire: Wire

  /**
   * Asks the model once and tells what it says, in the order that `ModelEvent` has; resolves when it said all. Rejects with
   * an `UpstreamFault` when the provider is to blame, and with a plain `Fault` when the request cannot be put to it at all.
   */
  ask(request: ModelRequest, limits: CallLimits, tell: Tell<ModelEvent>): Promise<void>

  /** The fast lane, where there is one: see `canForward`. */
  forward?(request: ModelRequest, sink: ByteSink, limits: CallLimits): Promise<Forwarded>

  /** How many tokens the request would cost, where the provider says so beforehand. */
  countTokens?(request: ModelRequest, limits: CallLimits): Promise<number>

  /** A body of the client's sent as it is, where the provider has such a door; resolves with the whole answer. */
  relay?(path: RelayedPath, json: string, limits: CallLimits): Promise<Buffer>

  /** Where code that it runs finds files, and leaves those that it makes. */
  readonly files?: ProviderFiles

  /** The models it says that it has. */
  listModels?(limits: CallLimits): Promise<DiscoveredModel[]>

  /** Ends idle connections at once, those in use when their answers are complete. */
  close(): Promise<void>
}

/** A provider with the fast lane open. */
export type ForwardingProvider = ModelProvider & Required<Pick<ModelProvider, 'forward'>>

/** The client dialect that a wire is; undefined for one that is none. */
export const dialectOfWire: Record<Wire, Dialect | undefined> = {
  'openai-chat': 'chat',
  'openai-responses': 'responses',
  anthropic: 'messages',
  gemini: undefined,
  demo: undefined,
}

/** True when the provider's bytes are what this client reads, so that a turn without gateway tools may be passed through. */
export function canForward(provider: ModelProvider, turn: Turn): provider is ForwardingProvider {
  return provider.forward !== undefined && dialectOfWire[provider.wire] === turn.dialect && !mayPause(turn)
}

/** A Messages upstream pauses in the middle of its own tools, and is then asked to go on from there (BR-056). */
const mayPause = ({ dialect, tools }: Turn): boolean =>
  dialect === 'messages' && tools.some(({ kind }) => kind === 'typed')
