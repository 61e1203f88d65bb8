import type { RequestId } from '@modelcontextprotocol/sdk/types.js'
import type { Bus } from '@tollgate/bus'
import { Fault, mcpCancelled } from '@tollgate/contracts'

/** One call as its client can speak of it later. A client that was given no session cannot. */
export interface CallName {
  /** The API key's id. */
  key: string
  session: string | undefined
  call: RequestId
}

export interface Cancellations {
  /** Tells whichever process works on the call that nobody waits for it any more. */
  cancel(name: CallName): void
  /** Has `end` called if that is told of the call; gives back how to stop listening. */
  listen(name: CallName, end: (why: Fault) => void): () => void
}

/**
 * Calls that clients may cancel. Each is answered by a connection and a server of its own, so that any replica can take
 * any request, and a cancellation, which is one too, finds its call by its name (WM-09).
 */
export function openCancellations(bus: Bus): Cancellations {
  /** As many as there are calls under way. */
  const running = new Map<string, Set<(why: Fault) => void>>()

  bus.listen(mcpCancelled, (name) => {
    for (const end of running.get(keyOf(name)) ?? []) end(new Fault('cancelled', 'the client cancelled the call'))
  })

  return {
    cancel({ key, session, call }) {
      if (session !== undefined) bus.announce(mcpCancelled, { key, session, call })
    },
    listen(name, end) {
      if (name.session === undefined) return () => {}
      const key = keyOf(name)
      const ends = running.get(key) ?? new Set()
      running.set(key, ends.add(end))
      return () => {
        ends.delete(end)
        if (ends.size === 0 && running.get(key) === ends) running.delete(key)
      }
    },
  }
}

const keyOf = ({ key, session, call }: CallName): string => JSON.stringify([key, session, call])
