import { Fault } from '@tollgate/contracts'
import type { TrustedAnswer, TrustedClient } from '@tollgate/http'
import type { Sandbox } from 'e2b'
import { z } from 'zod'
import type { CallLimits, Refusal } from '../provider.ts'
import { AGENT_PORT, apiUrl, type E2bSettings, sandboxUrl } from './endpoints.ts'
import { lost, refusalOfAnswer, refused, viaSdk } from './refusals.ts'
import { type E2bSession, secondsLeft } from './session.ts'

/** A sandbox that this replica can speak to. */
export interface Handle {
  status: 'ok'
  id: string
  /** For its files, its commands and its end. */
  sandbox: Sandbox
  accessToken: string | undefined
  trafficToken: string | undefined
  domain: string
  /** When the vendor ends it, as far as this replica has set it (epoch milliseconds). */
  endsAt: number
}

export interface LeaseNeeds {
  settings: E2bSettings
  http: TrustedClient
  sdk: { Sandbox: typeof Sandbox }
  /** Undefined: there is no key anywhere (CFG-53). */
  apiKey(): string | undefined
}

const CALL_MS = 15_000
/** Creating one includes its start. */
const CREATE_MS = 60_000
/** Handles to sandboxes that this replica has used; the least recently used goes, and is asked for again. */
const MAX_HANDLES = 1_000
/** The idle clock is set this much too long, so that it need not be set at every use. */
const SLACK = 1.05

const text = z.string().max(4_096).nullish()
const madeShape = z.object({
  sandboxID: z.string().regex(/^[\w-]{1,64}$/),
  envdVersion: z.string().regex(/^\d+\.\d+\.\d+/),
  envdAccessToken: text,
  trafficAccessToken: text,
  domain: z
    .string()
    .regex(/^[a-z0-9.-]{1,255}$/i)
    .nullish()
    .or(z.literal('')),
})

/**
 * Creates sandboxes, finds those of other replicas and keeps their clocks. These two calls are made by our own client:
 * the vendor's hides `Retry-After` and tries again by itself (CP-23).
 */
export function openLeases({ settings, http, sdk, apiKey }: LeaseNeeds) {
  const handles = new Map<string, Handle>()

  const remember = (handle: Handle): Handle => {
    handles.delete(handle.id)
    handles.set(handle.id, handle)
    for (const [oldest] of handles) {
      if (handles.size <= MAX_HANDLES) break
      handles.delete(oldest)
    }
    return handle
  }

  const ask = async (path: string, json: object, patienceMs: number, { signal, deadline }: CallLimits) => {
    const key = keyOr(apiKey)
    const until = Math.min(deadline, Date.now() + patienceMs)
    const headers = { 'x-api-key': key }
    const answer = await http.send({
      method: 'POST',
      url: apiUrl(settings) + path,
      json,
      headers,
      deadline: until,
      signal,
    })
    const body = readMade(answer)
    return body.status === 'failed' ? body : { ...body, key }
  }

  const handleTo = ({ sandboxID: id, ...made }: z.output<typeof madeShape>, key: string, seconds: number): Handle => {
    const domain = made.domain || settings.domain
    const accessToken = made.envdAccessToken || undefined
    const trafficToken = made.trafficAccessToken || undefined
    const sandbox = new sdk.Sandbox({
      sandboxId: id,
      envdVersion: made.envdVersion,
      sandboxDomain: domain,
      apiKey: key,
      domain: settings.domain,
      apiUrl: apiUrl(settings),
      sandboxUrl: sandboxUrl(settings, id, AGENT_PORT, domain),
      // said, since it would otherwise read the environment: with `debug` nothing is ever created or killed
      debug: false,
      // our own clock, our own retries, nothing on the console
      requestTimeoutMs: 0,
      retries: 0,
      logger: {},
      ...(accessToken === undefined ? {} : { envdAccessToken: accessToken }),
      ...(trafficToken === undefined ? {} : { trafficAccessToken: trafficToken }),
    })
    const endsAt = Date.now() + seconds * 1_000
    return { status: 'ok', id, sandbox, accessToken, trafficToken, domain, endsAt }
  }

  const leases = {
    async create(seconds: number, limits: CallLimits): Promise<Handle | Refusal> {
      const json = {
        templateID: settings.template,
        metadata: { service: 'tollgate' },
        timeout: seconds,
        allow_internet_access: settings.internet,
      }
      const answer = await ask('/v2/sandboxes', json, CREATE_MS, limits)
      return answer.status === 'failed' ? answer : remember(handleTo(answer.made, answer.key, seconds))
    },

    /** The session's sandbox, its idle clock set for `busySeconds` of work and the idle time after it (CP-25). */
    async find(session: E2bSession, limits: CallLimits, busySeconds = 0): Promise<Handle | Refusal> {
      const seconds = secondsLeft(session, Date.now(), busySeconds)
      if (seconds < 1) return lost
      const known = handles.get(session.sandbox)
      if (known) {
        const armed = await leases.arm(known, session, limits, busySeconds)
        return armed.status === 'failed' ? armed : remember(known)
      }
      const answer = await ask(`/v2/sandboxes/${session.sandbox}/connect`, { timeout: seconds }, CALL_MS, limits)
      return answer.status === 'failed' ? answer : remember(handleTo(answer.made, answer.key, seconds))
    },

    /** Moves the sandbox's end to where its session's idle time ends; one that is not held keeps the end it has. */
    async arm(handle: Handle, session: E2bSession, limits: CallLimits, busySeconds = 0) {
      const now = Date.now()
      const least = secondsLeft(session, now, busySeconds)
      const most = Math.max(
        least,
        Math.min(secondsLeft(session, now, Infinity), session.idleSeconds * SLACK + busySeconds),
      )
      const isRight = handle.endsAt >= now + least * 1_000 && handle.endsAt <= now + most * 1_000 + 1_000
      if (session.idleSeconds === 0 || isRight) return { status: 'ok' as const }
      const set = await leases.use(handle, limits, CALL_MS, (signal) =>
        handle.sandbox.setTimeout(Math.ceil(most) * 1_000, { signal }),
      )
      if (set.status === 'ok') handle.endsAt = now + Math.ceil(most) * 1_000
      return set
    },

    /** The vendor's client, of one sandbox. */
    async use<T>(handle: Handle, limits: CallLimits, patienceMs: number, work: (signal: AbortSignal) => Promise<T>) {
      return viaSdk({ limits, patienceMs, work, isRunning: (signal) => handle.sandbox.isRunning({ signal }) })
    },

    async kill(id: string, limits: CallLimits): Promise<{ status: 'ok' } | Refusal> {
      const handle = handles.get(id) ?? handleTo({ sandboxID: id, envdVersion: OLDEST_AGENT }, keyOr(apiKey), 0)
      const killed = await leases.use(handle, limits, CALL_MS, (signal) => handle.sandbox.kill({ signal }))
      // already gone is as good (CP-15)
      if (killed.status === 'failed' && killed.reason !== 'lost') return killed
      handles.delete(handle.id)
      return { status: 'ok' }
    },
  }
  return leases
}
export type Leases = ReturnType<typeof openLeases>

/** Killing asks the API alone, so it does not matter which agent the sandbox has. */
const OLDEST_AGENT = '0.1.0'

function keyOr(apiKey: () => string | undefined): string {
  const key = apiKey()
  if (key === undefined) throw new Fault('unavailable', NO_KEY)
  return key
}

export const NO_KEY = 'the hosted sandbox has no API key: store one, or set E2B_API_KEY'

function readMade(answer: TrustedAnswer): { status: 'ok'; made: z.output<typeof madeShape> } | Refusal {
  if (answer.status === 'failed' || answer.httpStatus < 200 || answer.httpStatus >= 300)
    return refusalOfAnswer(answer, 'api')
  const read = madeShape.safeParse(parseJson(answer.bytes))
  return read.success ? { status: 'ok', made: read.data } : refused
}

export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined // no shape takes it
  }
}
