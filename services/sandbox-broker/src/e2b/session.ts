/**
 * What a replica must know to go on with a sandbox. All of it stands in the session's id, since a session lives with its
 * provider and nothing of it is kept here.
 */
export interface E2bSession {
  sandbox: string
  /** The interpreter whose variables last from call to call (CP-17). */
  context: string
  /** 0: not held, it ends at `endsAt` and no use of it changes that. */
  idleSeconds: number
  /** Epoch seconds; no use moves it (CP-06). */
  endsAt: number
}

export const writeSession = ({ sandbox, context, idleSeconds, endsAt }: E2bSession): string =>
  [sandbox, context, idleSeconds, endsAt].join('.')

/** Undefined for what we never gave out: it is nobody's session. */
export function readSession(id: string): E2bSession | undefined {
  const [, sandbox, context, idle, end] = /^([\w-]{1,64})\.([\w-]{1,64})\.(\d{1,6})\.(\d{1,12})$/.exec(id) ?? []
  if (!sandbox || !context) return undefined
  return { sandbox, context, idleSeconds: Number(idle), endsAt: Number(end) }
}

/** How long it may live from now on: until its end, or for its idle time while that comes first. */
export function secondsLeft({ idleSeconds, endsAt }: E2bSession, now: number, busySeconds = 0): number {
  const untilEnd = Math.floor(endsAt - now / 1_000)
  return idleSeconds === 0 ? untilEnd : Math.min(idleSeconds + busySeconds, untilEnd)
}
