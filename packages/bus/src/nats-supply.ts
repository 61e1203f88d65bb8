import { setTimeout as sleep } from 'node:timers/promises'
import type { Delivery } from './nats-delivery.ts'
import type { Wiring } from './nats-exchange.ts'
import { openPull } from './nats-pull.ts'
import type { Place } from './nats-streams.ts'

const BACKOFF_MS = 250
const BACKOFF_MOST_MS = 5_000

/** Messages of a consumer, as somebody has time for them. */
export interface Supply {
  /** What is there, at most `most` and at least one, however long that takes; none at all once it was stopped. Never throws. */
  take(): Promise<Delivery[]>
  /** Messages that came, and were not taken yet. */
  readonly held: readonly Delivery[]
  /** Whatever came and was not taken, or still comes, is given back. */
  stop(giveBack: (delivery: Delivery) => void): Promise<void>
}

interface SupplyOptions {
  wiring: Wiring
  place: Place
  consumer: string
  most: number
  /** Asks for the next messages while the last are worked on. A worker of one slot must not: it would sit on a call. */
  ahead: boolean
  /** How long what came first waits for more, unless there are `most` already. */
  lingerMs: number
}

export function openSupply({ wiring, place, consumer, most, ahead, lingerMs }: SupplyOptions): Supply {
  const { link, inbox, log } = wiring
  const held: Delivery[] = []
  const stopped = new AbortController()
  let onStray: ((delivery: Delivery) => void) | undefined
  let wake: (() => void) | undefined
  let troubles = 0

  const pull = openPull({
    link,
    inbox: inbox.fresh(),
    place,
    consumer,
    deliver(delivery) {
      if (onStray) return onStray(delivery)
      troubles = 0
      held.push(delivery)
      wake?.()
    },
    ended(why) {
      if (why === 'trouble') troubles += 1
      wake?.()
    },
  })

  /** Asks as soon as there is somebody to ask. */
  async function ask(): Promise<void> {
    try {
      await link.whenConnected()
      if (troubles > 0) {
        await sleep(Math.min(BACKOFF_MS * 2 ** (troubles - 1), BACKOFF_MOST_MS), undefined, { signal: stopped.signal })
        place.doubt()
      }
      await place.ready()
      if (!stopped.signal.aborted && link.connected && !pull.asking) pull.ask(most - held.length)
    } catch (err) {
      if (stopped.signal.aborted) return
      troubles += 1
      log.warn({ err, stream: place.stream }, 'a stream cannot be reached; trying again')
    }
  }

  /** Waits for more of what has begun to come. */
  async function linger(): Promise<void> {
    if (lingerMs === 0 || held.length >= most) return
    await sleep(lingerMs, undefined, { signal: stopped.signal }).catch(() => undefined)
  }

  return {
    held,
    async take() {
      while (!stopped.signal.aborted && !link.closed) {
        if (held.length > 0) {
          await linger()
          if (stopped.signal.aborted) break
          const taken = held.splice(0, most)
          if (ahead && link.connected && troubles === 0 && !pull.asking) pull.ask(most)
          return taken
        }
        if (!pull.asking) await ask()
        // what came, or ended, while we were asking has woken nobody
        if (pull.asking && held.length === 0) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      }
      return []
    },
    async stop(giveBack) {
      onStray = giveBack
      stopped.abort()
      for (const delivery of held.splice(0)) giveBack(delivery)
      wake?.()
      await pull.stop()
    },
  }
}
