import type { ModelEvent } from '../conversation/events.ts'
import type { Message, ToolEntry, Turn } from '../conversation/turn.ts'
import type { FormFile } from './multipart.ts'
import type { CallLimits } from './provider.ts'
import type { UpstreamReply } from './upstream.ts'

/** The files of a provider that runs code by itself: its containers read only what it holds. */
export interface ProviderFiles {
  /** What it takes for one request, and of each file. */
  readonly most: { files: number; bytes: number }
  /** Puts a copy there that ends by itself within the hour, should nobody remove it. */
  put(file: FormFile, sent: Sendable, limits: CallLimits): Promise<FileCopy>
  /** A copy that is gone already is removed. */
  remove(copy: FileCopy, limits: CallLimits): Promise<void>
  /** The same with the copies where the provider's code finds them. */
  attach<S extends Sendable>(sent: S, copies: readonly FileCopy[]): S
  /** Files, and places where there may be more of them, that an event of an answer names. */
  namedIn(event: ModelEvent): MadeThere[]
  /** What code made in a container; absent where answers name every file. */
  list?(container: string, limits: CallLimits): Promise<MadeFile[]>
  get(file: MadeFile, limits: CallLimits): Promise<FetchedFile>
}

/** As much of what is sent as files are put into. */
export interface Sendable {
  turn: Turn
  messages: Message[]
  tools: ToolEntry[]
}

export interface FileCopy {
  id: string
  /** Of a copy that lies in a container of the client's own. */
  container?: string
}

export interface MadeFile {
  id: string
  /** Where it lies, at providers whose files lie in containers. */
  container?: string
  name?: string
}

export type MadeThere = ({ type: 'file' } & MadeFile) | { type: 'container'; id: string }

export interface FetchedFile {
  name: string
  mediaType: string | undefined
  /** Undefined where nobody told beforehand. */
  bytes: number | undefined
  /** Asked for when it is first read. */
  content: AsyncIterable<Uint8Array>
}

/** How long a copy lasts that could not be removed: the least that both vendors take. */
export const COPY_SECONDS = 3_600

/** A body that is asked for when it is first read, so that nothing is left open by whoever does not want it. */
export async function* bodyOf(ask: () => Promise<UpstreamReply>): AsyncGenerator<Uint8Array> {
  yield* (await ask()).chunks()
}
