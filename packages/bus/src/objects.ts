/** A store of named byte streams that every process on the bus shares. Names are 1 to 128 letters, digits, `_` and `-`. */
export interface Objects {
  /**
   * Stores the whole content or nothing. No more than a few pieces of it are in memory at a time. More than `maxBytes` is
   * `too_large`, noticed while it streams; a full store is `unavailable`.
   */
  put(name: string, content: AsyncIterable<Uint8Array>, options: ObjectPut): Promise<ObjectFacts>
  /**
   * Undefined when there is no such object. Content is read piece by piece as it is asked for, and checked as a whole: if
   * the object is replaced or deleted before its end, reading fails rather than mixing two contents.
   */
  get(name: string, options?: { signal?: AbortSignal }): Promise<ReadableObject | undefined>
  stat(name: string): Promise<ObjectFacts | undefined>
  /** False when there was nothing to delete. */
  delete(name: string): Promise<boolean>
  /** The name of every object there is. */
  names(): Promise<string[]>
  /** Removes pieces that a writer who died left behind and that are older than this. Resolves to how many objects they were of. */
  tidy(olderThanMs: number): Promise<number>
}

export interface ObjectPut {
  maxBytes: number
  signal?: AbortSignal
}

export interface ObjectFacts {
  bytes: number
  storedAt: Date
}

export type ReadableObject = ObjectFacts & { content: AsyncIterable<Uint8Array> }

export interface ObjectsOptions {
  /** Which store: letters, digits, `_` and `-`. */
  bucket: string
  /** Bytes that all its objects together may take. */
  maxBytes: number
}
