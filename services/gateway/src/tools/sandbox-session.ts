import type { Bus } from '@tollgate/bus'
import {
  type containerWish,
  Fault,
  type FileReference,
  type HeldContainer,
  sandboxExec,
  sandboxOpen,
  sandboxSeed,
  type Tenancy,
} from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { z } from 'zod'
import { passable } from './container.ts'
import { ClaimLost, type ClaimTimes, type ContainerClaim, holdClaim } from './container-claim.ts'
import { giveBack, type LeasedSession } from './give-back.ts'
import type { CallContext } from './tool.ts'

const EXEC_SECONDS = 60
/** The broker waits 10 s longer than it grants, and the answer has to travel. */
const EXEC_SLACK_SECONDS = 15
const OPEN_MS = 60_000
const MOST_LEASE_SECONDS = 3_600

/** CP-24: what a request of so many rounds may need of a sandbox. */
export const sessionSeconds = (rounds: number, execSeconds = EXEC_SECONDS): number =>
  Math.min(execSeconds * rounds * 4 + 60, MOST_LEASE_SECONDS)

export interface SessionWish {
  /** Absent: a session for this request alone (C-02). */
  container?: z.input<typeof containerWish> | undefined
  /** The image a workspace pins (W-22). */
  image?: string | undefined
  /** How long the request may need it; what is left of its deadline when absent. */
  leaseSeconds?: number | undefined
  /** Granted to each call. */
  execSeconds?: number | undefined
  /** Put into its working directory before the first call (FI-12), and into that of a session that takes its place. */
  files?: readonly FileReference[] | undefined
}

/** `unheld`: another request may have the container by now, so that nothing more of this one runs in it (C-17). */
export type SandboxRun = z.output<typeof sandboxExec.output> | { status: 'failed'; reason: 'unheld' }
export type SandboxRunEvent = z.output<NonNullable<typeof sandboxExec.event>>
export type CodeKind = NonNullable<z.input<typeof sandboxExec.input>['kind']>

/** One request's use of a sandbox: every call of it runs in the same session (C-01). */
export interface SandboxSession {
  /** The session as it stands, for whoever puts files into it; undefined once it was lost or closed. */
  id(): string | undefined
  /** The sandbox that outlives the request, if there will be one (C-19). */
  container(): HeldContainer | undefined
  /**
   * Runs one piece of code. A lost session is reported as lost, and the next call leases a new one (BR-128). Hears the
   * run's events where it is given an `onEvent`. What it throws is a failure of the way there, or the fired signal's.
   */
  execute(
    code: string,
    kind: CodeKind,
    at: CallContext,
    onEvent?: (event: SandboxRunEvent) => void,
  ): Promise<SandboxRun>
  /** Gives it back, once; `discard`: also a new container, of which nobody was told (C-29). Tells until when it is kept (C-11). */
  close(options?: { discard?: boolean }): Promise<HeldContainer | undefined>
}

interface Lease {
  id: string
  tenancy: Tenancy
  container: HeldContainer | undefined
  claim: ContainerClaim | undefined
}

const sessionOf = ({ id, tenancy, container }: Lease): LeasedSession => ({ id, tenancy, container: container?.id })

export interface SessionNeeds {
  bus: Bus
  log: Log
  /** As the contract has them when absent. */
  claimTimes?: ClaimTimes
}

/** Leases the session; a refusal is worded for the client, or says what is wrong with the container it names. */
export async function openSandboxSession(
  needs: SessionNeeds,
  wish: SessionWish,
  first: CallContext,
): Promise<SandboxSession> {
  const { bus } = needs
  const execSeconds = wish.execSeconds ?? EXEC_SECONDS
  let leased: Lease | undefined = await lease(first, wish.container)

  /**
   * Waited for until the request ends, but never broken off: a session made for nobody would keep its place until it had
   * idled away, so one that comes too late, or that is all that comes, is given back.
   */
  async function lease(
    { tenancy, signal, deadline }: CallContext,
    container: SessionWish['container'],
  ): Promise<Lease> {
    signal.throwIfAborted()
    const leaseSeconds = wish.leaseSeconds ?? secondsUntil(deadline)
    const since = performance.now()
    let made: string | undefined
    const onEvent = ({ session }: { session: string }) => {
      made = session
    }
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      bus
        .call(
          sandboxOpen,
          { tenancy, container, leaseSeconds, image: wish.image },
          { deadline: Date.now() + OPEN_MS, onEvent },
        )
        .then(
          async ({ session: id, container: held }) => {
            const claim = held && holdClaim(needs, { tenancy, container: held.id, since }, needs.claimTimes)
            const mine = { id, tenancy, container: held, claim }
            try {
              if (!signal.aborted) await within(mine, signal, (ends) => seed(bus, mine, wish.files, ends, deadline))
              if (!signal.aborted) return resolve(mine)
            } catch (thrown) {
              reject(thrown)
            }
            claim?.stop()
            void giveBack(bus, sessionOf(mine), container?.kind !== 'id').catch(() => {}) // tried again by itself
          },
          (thrown: unknown) => {
            const claimed = container?.kind === 'id' ? container.id : undefined
            const left = made !== undefined && { id: made, tenancy, container: claimed }
            if (left) void giveBack(bus, left, claimed === undefined).catch(() => {})
            reject(refusal(Fault.from(thrown), container))
          },
        )
    })
  }

  return {
    id: () => leased?.id,
    container: () => leased?.container,
    async execute(code, kind, at, onEvent) {
      // what was kept is gone with its sandbox, and nobody will be told of another
      leased ??= await lease(at, undefined)
      const { id } = leased
      const asked = {
        tenancy: at.tenancy,
        session: id,
        code,
        kind,
        stream: onEvent !== undefined,
        timeoutSeconds: execSeconds,
      }
      const deadline = Math.min(at.deadline, Date.now() + (execSeconds + EXEC_SLACK_SECONDS) * 1_000)
      try {
        const done = await within(leased, at.signal, (signal) =>
          bus.call(sandboxExec, asked, { signal, deadline, ...(onEvent && { onEvent }) }),
        )
        if (done.status === 'failed' && done.reason === 'lost') letGo()
        return done
      } catch (thrown) {
        if (thrown instanceof ClaimLost) return { status: 'failed', reason: 'unheld' }
        throw thrown
      }
    },
    async close({ discard = false } = {}) {
      if (leased === undefined) return undefined
      const mine = leased
      letGo()
      // what was resumed is the caller's, whatever becomes of the request (C-30)
      return giveBack(bus, sessionOf(mine), discard && wish.container?.kind !== 'id')
    },
  }

  function letGo(): void {
    leased?.claim?.stop()
    leased = undefined
  }
}

/** Work in a session, which ends when the request does, and where it is kept when another request may have it. */
const within = <T>({ claim }: Lease, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
  claim ? claim.during(signal, work) : work(signal)

/** FI-16: code does not run without the files that it was asked to work on. */
async function seed(
  bus: Bus,
  { id, tenancy }: Pick<Lease, 'id' | 'tenancy'>,
  files: SessionWish['files'] = [],
  signal: AbortSignal,
  deadline: number,
): Promise<void> {
  if (files.length === 0) return
  try {
    await bus.call(sandboxSeed, { tenancy, session: id, files: [...files] }, { signal, deadline })
  } catch (cause) {
    if (signal.aborted) throw cause
    throw new Fault('upstream', 'code_execution sandbox did not take a file of this request', { cause })
  }
}

const secondsUntil = (deadline: number): number =>
  Math.min(MOST_LEASE_SECONDS, Math.max(1, Math.ceil((deadline - Date.now()) / 1_000)))

/** in the words a client may read; the broker's own stay behind. */
function refusal(fault: Fault, container: SessionWish['container']): Fault {
  switch (fault.failure) {
    case 'unavailable':
    case 'rate_limited': {
      const text = 'code_execution sandbox temporarily unavailable. Retry later.'
      const { retryAfterSeconds } = fault
      return new Fault('unavailable', text, {
        cause: fault,
        ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      })
    }
    case 'upstream':
    case 'timeout':
      return new Fault(
        'upstream',
        "code_execution sandbox unreachable. Check the sandbox URL in the dashboard's Tools settings, or OTARI_SANDBOX_URL, and that the container is running.",
        { cause: fault },
      )
    case 'invalid_request':
      return container?.kind === 'id' ? passable(fault) : fault
    default:
      return fault
  }
}
