/** Read when they are needed, never copied at start, so that a runtime change holds for the next call (CFG-52). */
export interface SandboxBrokerSettings {
  /** CFG-01: which adapter runs the code. */
  provider: string
  /** CFG-02: base URL of a protocol v1 backend. Without it code execution is not available. */
  url?: string
  /** What to say when there is no `url`: why the bundled sandbox did not start, say. */
  unavailableReason?: string
  /** Bearer credential of the backend (CP-22). */
  token?: string
  /** CFG-04: image asked for when the workspace pins none (CP-05). */
  sessionImage?: string
  /** Most seconds granted to one call. */
  execTimeoutSeconds: number
  /** CFG-34: stored of the files that one call made, where there is a store; 20 and 100 MiB when absent. */
  outputMaxFiles?: number
  outputMaxBytes?: number
}
