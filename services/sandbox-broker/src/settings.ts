import type { E2bSettings } from './e2b/endpoints.ts'

/** Read when they are needed, never copied at start, so that a runtime change holds for the next call (CFG-52). */
export interface SandboxBrokerSettings {
  /** CFG-01: which adapter runs the code. */
  provider: string
  /** CFG-02: base URL of a protocol v1 backend. Without it code execution is not available. */
  url?: string | undefined
  /** What to say when there is no `url`: why the bundled sandbox did not start, say. */
  unavailableReason?: string
  /** Where hosted sandboxes come from, for the provider `e2b`; the vendor's own when absent. */
  e2b?: E2bSettings
  /** Bearer credential of the backend (CP-22). */
  token?: string | undefined
  /** The same of a backend whose address is set at run time: never that of a sandbox which belongs to this process. */
  configuredToken?: string | undefined
  /** CFG-04: image asked for when the workspace pins none (CP-05). */
  sessionImage?: string
  /** Most seconds granted to one call. */
  execTimeoutSeconds: number
  /** CFG-34: stored of the files that one call made, where there is a store; 20 and 100 MiB when absent. */
  outputMaxFiles?: number
  outputMaxBytes?: number
  /** CFG-06: how long a kept sandbox lives without use; 0 keeps none; 600 when absent. */
  containerIdleSeconds?: number
  /** CFG-07: how long it lives at most, from its first lease; 3600 when absent. */
  containerLifetimeSeconds?: number
}
