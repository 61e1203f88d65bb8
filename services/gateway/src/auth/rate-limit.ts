import { Fault } from '@tollgate/contracts'
import type { GatewaySettings } from '../settings.ts'
import type { Identity } from './identity.ts'

const WINDOW_MS = 60_000
/** Beyond so many users in a minute, whoever was quiet longest begins anew. */
const MOST_USERS = 100_000

export interface RateLimit {
  /** Counts one request of a user; throws `rate_limited`, counting nothing, when the last 60 s are full. */
  take(identity: Pick<Identity, 'organization' | 'user'>): void
}

/**
 * CFG-37: at most so many requests of a user in any 60 seconds, in this process: replicas do not add theirs together.
 * Kept are the times of requests that were let through in the last minute, and no older ones.
 */
export function openRateLimit(
  settings: Pick<GatewaySettings, 'rateLimitRpm'>,
  now: () => number = Date.now,
): RateLimit {
  /** Each user's times, oldest first; users in the order of their last request. */
  const users = new Map<string, number[]>()
  return {
    take({ organization, user }) {
      const limit = settings.rateLimitRpm
      if (limit === undefined) return
      const at = now()
      forgetQuiet(at)
      const key = `${organization} ${user}`
      const times = users.get(key) ?? []
      const fresh = times.findIndex((time) => time > at - WINDOW_MS)
      times.splice(0, fresh === -1 ? times.length : fresh)
      const freed = times[times.length - limit]
      if (freed !== undefined) {
        const seconds = Math.ceil((freed + WINDOW_MS - at) / 1000)
        throw new Fault('rate_limited', 'Rate limit exceeded', { retryAfterSeconds: seconds })
      }
      times.push(at)
      users.delete(key)
      users.set(key, times)
    },
  }

  function forgetQuiet(at: number): void {
    for (const [key, times] of users) {
      if (users.size < MOST_USERS && (times.at(-1) ?? 0) > at - WINDOW_MS) return
      users.delete(key)
    }
  }
}
