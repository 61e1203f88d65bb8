/** What was not finished by then belongs to a process that died. */
export const ABANDONED_MS = 24 * 60 * 60 * 1000

export interface PutOptions {
  /** More than this is `too_large`, noticed while it streams; nothing is kept of it. */
  maxBytes: number
  signal?: AbortSignal
}

export interface StoredFile {
  bytes: number
  storedAt: Date
}

/**
 * Where the bytes of files lie; who may have them, and what they are called, is known elsewhere. An id is 1 to 128
 * letters, digits, `_` and `-`: anything else is `invalid_request`.
 */
export interface FileStore {
  /** Stores the whole content or nothing: a reader never sees half a file. An id used again is replaced in one step. */
  put(id: string, content: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredFile>
  /**
   * The content as it streams out; undefined when there is no such file. Whoever takes it reads it or destroys it. A file
   * replaced or deleted meanwhile is read whole or not to its end, never mixed.
   */
  get(
    id: string,
    options?: { signal?: AbortSignal },
  ): Promise<(StoredFile & { content: AsyncIterable<Uint8Array> }) | undefined>
  stat(id: string): Promise<StoredFile | undefined>
  /** False when there was nothing to delete. */
  delete(id: string): Promise<boolean>
  /** Every file there is, in no order. */
  ids(): Promise<string[]>
  /** Removes what writers who died left half-written and older than this. Resolves to how many there were. */
  tidy(olderThanMs: number): Promise<number>
}
