import type { IsolationLevel } from '../settings.ts'

/** Something that can make sandboxes. The levels of isolation differ in how it does, and in nothing a caller sees. */
export interface Driver {
  readonly level: IsolationLevel
  /** In words, for operators: what keeps sessions apart. */
  readonly description: string
  readonly python: string
  /** Rejects when none can be had in time. */
  create(): Promise<Sandbox>
  /** Why no sandbox can be made just now; undefined when one can. */
  down(): string | undefined
  /** Ends every sandbox and leaves nothing behind. */
  close(): Promise<void>
}

export interface Call {
  kind: 'python' | 'shell'
  text: string
  timeoutSeconds: number
  /** Hears what is kept of the output while it is written; the result has all of it once more. */
  onOutput?: (stream: 'stdout' | 'stderr', bytes: Buffer) => void
}

/** Whoever waits for a call. An `AbortSignal` costs a tenth of what a short call takes in all. */
export interface Caller {
  readonly hasLeft: boolean
  /** One listener; the next takes its place. */
  onLeave(listener: (() => void) | undefined): void
}

/** What ended a call before its program did. */
export type Ending = 'time' | 'memory' | 'processes' | 'disk' | 'cancelled'

export interface CallResult {
  stdout: Captured
  stderr: Captured
  exitCode: number
  ending: Ending | undefined
  /** Why variables are gone, when they are. Files stay. */
  lost: string | undefined
  /** Plain files that are new or changed, by their paths. */
  files: string[]
}

export interface Captured {
  bytes: Buffer
  /** How many more were written. */
  dropped: number
}

export interface ListedFile {
  path: string
  size_bytes: number
  modified_at: number
}

/** A refusal in the terms of HTTP: what a path, or what lies there, does not allow. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused'
  readonly status: number

  constructor(status: number, reason: string) {
    super(reason)
    this.status = status
  }
}

/** The session is gone: ended by its client, by its own clock, by a limit, or with the process that held it. */
export class SandboxLost extends Error {
  override readonly name = 'SandboxLost'
}

/** A file as it was when reading from it began. */
export interface FileState {
  /** Of the whole file. */
  size: number
  /** The same for as long as it is the same file with the same content. */
  identity: string
}

/** Hears a piece of a file: what file it is, then its bytes as they come, which are gone unless it keeps them. */
export interface Reading {
  begin(file: FileState): void
  data(bytes: Buffer): void
}

/** The names in a folder, two levels deep, or the beginning of a file. */
export type Viewed = { names: string[] } | { data: Buffer; size: number }

/** One session's inside. Calls run one at a time; all methods reject with `SandboxLost` once it is gone. */
export interface Sandbox {
  /** Ends with its caller as it would with its time; the result then is `cancelled`. */
  run(call: Call, caller: Caller): Promise<CallResult>
  list(path: string): Promise<ListedFile[]>
  view(path: string, length: number): Promise<Viewed>
  /** Rejects when the file changes before all that was asked for has been read. */
  read(path: string, offset: number, length: number, reading: Reading): Promise<void>
  /** Adds to an upload that nobody sees before it is committed. */
  write(upload: string, offset: number, data: Buffer[]): Promise<void>
  /** Gives an upload its name in one step; `exclusive` refuses (409) when there is something already. */
  commit(upload: string, path: string, options: { exclusive: boolean }): Promise<string>
  /** Writes all of a small file in one step. */
  save(path: string, data: Buffer, options: { exclusive: boolean }): Promise<string>
  discard(upload: string): Promise<void>
  /** Resolves when it is gone, whatever the reason. */
  readonly ended: Promise<void>
  end(): void
}

/** Most bytes of one `read`, `write` or `save`. */
export const PIECE_BYTES = 1024 * 1024
