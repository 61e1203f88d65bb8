import type { Bus } from '@tollgate/bus'
import type { Log } from '@tollgate/telemetry'

/** What every service is handed beside what is its own. It opens no connection and reads no setting by itself. */
export interface CommonNeeds {
  bus: Bus
  log: Log
}

/** A started service, and how to end it. */
export interface Running {
  /** Why the service cannot take work just now; undefined when it can. Shown by `/readyz`. */
  notReady?(): Promise<string | undefined>
  /**
   * Stops by `deadline` (epoch milliseconds): takes nothing new, lets running work finish, cancels the rest.
   * Resolves false when something had to be cancelled.
   */
  close(deadline: number): Promise<boolean>
}
