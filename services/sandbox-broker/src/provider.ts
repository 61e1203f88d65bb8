import type { Readable } from 'node:stream'
import type { sandboxLimit } from '@tollgate/contracts'
import type { z } from 'zod'

/** When and why a call to a sandbox ends; every operation takes it. */
export interface CallLimits {
  signal: AbortSignal
  /** Epoch milliseconds. */
  deadline: number
}

/** Why an operation came to nothing. What the backend said about it stays with the backend (CP-14). */
export type Refusal =
  /** No answer, or none that HTTP allows. */
  | { status: 'failed'; reason: 'unreachable' | 'timeout' | 'refused' }
  /** The session is gone (404): what it held is gone with it (BR-128). */
  | { status: 'failed'; reason: 'lost' }
  /** At capacity (503). */
  | { status: 'failed'; reason: 'busy'; retryAfterSeconds?: number }

export type Opened =
  | {
      status: 'ok'
      session: string
      isolation?: string
      /** In force, never assumed longer (CP-06). Reported: the backend reclaims by itself (CP-12). */
      idleTimeoutSeconds?: number
      maxLifetimeSeconds?: number
    }
  | Refusal

export interface Execution {
  status: 'ok'
  stdout: string
  stderr: string
  returnCode: number
  /** Files the call says it made, by their paths in the workspace. */
  files: string[]
  /** Which limit ended it, where the backend tells. */
  limit?: z.output<typeof sandboxLimit>
}

export interface WorkspaceFile {
  path: string
  bytes: number
  mediaType?: string
  /** POSIX seconds. */
  modifiedAt?: number
}

export interface CreateOptions {
  image?: string
  idleTimeoutSeconds?: number
  maxLifetimeSeconds?: number
}

export interface ExecCall {
  kind: 'python' | 'shell'
  /** Python source, or a command line. */
  code: string
  /** Hears output as it is written, whole characters at a time, where the backend can tell it so early. */
  onOutput?: (piece: { stream: 'stdout' | 'stderr'; text: string }) => void
  /** What the sandbox may use; the provider waits longer than that. */
  timeoutSeconds: number
}

export interface SeedFile {
  /** Where it goes, relative to the workspace. */
  path: string
  mediaType: string
  bytes: number
  content: Readable
}

/** What a provider can do beyond running code. */
export interface Capabilities {
  /** Takes `CreateOptions.image`; the others ignore it (CP-05). */
  images: boolean
  /** Has file operations; a `protocol` backend may still answer that it has none. */
  files: boolean
  /** Is to be told at every lease how long the session may live (CP-24); a backend with clocks of its own is not (CP-03). */
  lifetimes?: boolean
}

/**
 * Somewhere that code runs. Sessions live there and nowhere else, so any replica of the broker may continue one. Nothing
 * throws but a fired signal or a mistake of ours.
 */
export interface Provider {
  readonly name: string
  readonly capabilities: Capabilities
  create(options: CreateOptions, limits: CallLimits): Promise<Opened>
  exec(session: string, call: ExecCall, limits: CallLimits): Promise<Execution | Refusal>
  /** A session already gone is success (CP-15). */
  destroy(session: string, limits: CallLimits): Promise<{ status: 'ok' } | Refusal>
  /** `lost`: no such session or folder, or a backend without file operations (CP-18). */
  list(session: string, path: string, limits: CallLimits): Promise<{ status: 'ok'; files: WorkspaceFile[] } | Refusal>
  get(session: string, path: string, limits: CallLimits): Promise<FileContent | Refusal>
  put(session: string, file: SeedFile, limits: CallLimits): Promise<{ status: 'ok'; path: string } | Refusal>
  close(): Promise<void>
}

/** To be read to its end, or destroyed. */
export interface FileContent {
  status: 'ok'
  mediaType: string
  content: Readable
}
