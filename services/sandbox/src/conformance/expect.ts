import { Breach, type ConformanceClient } from './client.ts'
import type { Ran } from './session.ts'

export interface Check {
  name: string
  run(client: ConformanceClient): Promise<void>
}

/** Written by programs under test, so that what comes back is known to have run. */
export const MARKER = 'conformance-4b1d'
export const UNKNOWN = 'sbx-conformance-unknown'

export function expectRan({ stdout, stderr, code }: Ran, wanted: string): void {
  if (code !== 0) throw new Breach(`the program ended with ${code}: ${stderr.slice(0, 200)}`)
  if (!stdout.includes(wanted)) throw new Breach(`stdout lacks what the program wrote: ${stdout.slice(0, 200)}`)
}

/** The contract's way to say that a program failed: an exit code or words on stderr, never another status. */
export function expectFailed({ stderr, code }: Ran): void {
  if (code === 0 && stderr === '') throw new Breach('a failed program looks like one that ran well')
}
