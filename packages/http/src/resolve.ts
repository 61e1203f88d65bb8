import { lookup } from 'node:dns/promises'

/** Addresses of a name, in the order of the answer; none when it does not exist or nobody can tell. Called once a hop. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<string[]>

/**
 * The system's resolver, hosts file and search domains included. A look-up under way cannot be stopped: when `signal`
 * fires its answer is no longer waited for, and it ends by the resolver's own time limit.
 */
export const systemResolve: Resolve = (host, signal) =>
  new Promise((settle, reject) => {
    signal.throwIfAborted()
    const leave = () => reject(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    lookup(host, { all: true, verbatim: true })
      .then(
        (answers) => settle(answers.map(({ address }) => address)),
        () => settle([]),
      )
      .finally(() => signal.removeEventListener('abort', leave))
  })
