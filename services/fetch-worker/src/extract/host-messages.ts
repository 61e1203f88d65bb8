import type { ExtractJob } from './job.ts'

/** What is said to a host process. */
export type ToHost<J = ExtractJob> = { id: number; job: J; ms: number } | { cancel: number }

/**
 * What it says: `started` once the thread is there and loaded, so that only reading counts as a body's time; with `done`,
 * what the process holds now that the body is gone.
 */
export type FromHost =
  | { type: 'ready' }
  | { type: 'started'; id: number }
  | { type: 'done'; id: number; result: unknown; heldBytes: number }
  | { type: 'memory'; rssBytes: number }

/** This process only passes bodies on; its thread, which reads them, has limits of its own and may not be given this one. */
export const smallMain = '--max-semi-space-size=2'
