/** What both databases are underneath: connections that are lent to one holder at a time. */
export interface Engine {
  readonly kind: 'postgres' | 'pglite'
  /** Waits at most `withinMs` (the engine's own limit when absent) for a free connection; fails `unavailable` after. */
  connect(withinMs?: number): Promise<Connection>
  /** Waits for the holders, but not for ever, then disconnects. Called once. */
  close(): Promise<void>
}

export interface Connection {
  /**
   * Runs one statement; without parameters it may be several, and the last one's rows are the answer. A `name` lets the
   * database keep the plan: the same name must always come with the same text.
   */
  query(sql: string, parameters: readonly unknown[], name?: string): Promise<Answer>
  /** Gives the connection back; a broken one is closed instead of lent again. */
  release(broken?: boolean): void
}

export interface Answer {
  /** The first word of the server's own reply: INSERT, COMMIT, ROLLBACK. */
  command: string
  rowCount: number
  rows: unknown[]
}
