import type { Bus } from '@tollgate/bus'
import {
  changedSettings,
  Fault,
  type SearchOption,
  type SearchProviderEntry,
  sandboxDescribe,
  searchDescribe,
} from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { GatewaySettings } from '../settings.ts'
import { type Away, awayOf } from './away.ts'

const FRESH_MS = 15_000
/** A broker that is down is asked again soon, yet not by every request. */
const RETRY_MS = 1_000
const ANSWER_MS = 2_000
/** So long a broker that fell silent counts as having what it said last: who needs it is told to come again. */
const KNOWN_MS = 300_000

/** What this deployment can run, whoever asks. */
export interface Capabilities {
  search: InLoopSearch | null
  fetch: boolean
  /** What a fetch that a model asks for runs on; the built-in fetcher where it is absent (F-19). */
  fetchInstance?: FetchInstance
  sandbox: boolean
  intercept: boolean
  executor: GatewaySettings['codeExecutionExecutor']
  away?: Away
}

/** What a search that a model asks for runs on (S-30). */
export interface InLoopSearch {
  kind: 'instance' | 'legacy'
  label: string
  /** Null: the legacy settings. */
  instance: string | null
  provider: string
  /** What a declaration may set of the provider's own (S-35). */
  options: readonly SearchOption[]
}

/** A fetch instance, as far as calls of it are named and priced by it. */
export interface FetchInstance {
  label: string
  instance: string
  provider: string
}

/**
 * Asks the brokers what they have, and remembers it for at most 15 s. A broker that stays away takes its tool with it, no
 * more; a tool that is configured and was never heard of is away, which is not the same as none.
 */
export function openCapabilities({ bus, settings, log }: { bus: Bus; settings: GatewaySettings; log: Log }) {
  const search = remembered(() => bus.call(searchDescribe, {}, { deadline: Date.now() + ANSWER_MS }), 'search', log)
  const sandbox = remembered(() => bus.call(sandboxDescribe, {}, { deadline: Date.now() + ANSWER_MS }), 'sandbox', log)
  bus.listen(changedSettings, () => {
    search.forget()
    sandbox.forget()
  })

  return async (): Promise<Capabilities> => {
    const [searching, running] = await Promise.all([search.read(), sandbox.read()])
    const away = awayOf(settings, { search: searching !== undefined, sandbox: running !== undefined })
    return {
      search: searching?.inLoop ? withOptions(searching.inLoop, searching.providers) : null,
      fetch: settings.webFetchEnabled && !away?.has('web_fetch'),
      ...(searching?.inLoopFetch && { fetchInstance: searching.inLoopFetch }),
      sandbox: running?.available ?? false,
      intercept: settings.webSearchIntercept,
      executor: settings.codeExecutionExecutor,
      ...(away && { away }),
    }
  }
}

const withOptions = (inLoop: Omit<InLoopSearch, 'options'>, providers: SearchProviderEntry[]): InLoopSearch => ({
  ...inLoop,
  options: providers.find(({ id }) => id === inLoop.provider)?.options ?? [],
})

/** One answer kept for a while; those who ask meanwhile share it. */
function remembered<T>(ask: () => Promise<T>, broker: string, log: Log) {
  let kept: { answer: Promise<T | undefined>; until: number } | undefined
  let known: { answer: T; until: number } | undefined
  const forget = () => {
    kept = undefined
  }
  const read = (): Promise<T | undefined> => {
    if (kept !== undefined && Date.now() < kept.until) return kept.answer
    const mine = { answer: ask().then(said, missing), until: Date.now() + FRESH_MS }
    kept = mine
    return mine.answer

    function said(answer: T): T {
      known = { answer, until: Date.now() + KNOWN_MS }
      return answer
    }
    function missing(thrown: unknown): T | undefined {
      mine.until = Date.now() + RETRY_MS
      const about = { broker, failure: Fault.from(thrown).failure }
      if (known === undefined || Date.now() >= known.until) {
        log.warn(about, 'a broker does not say what it can do; its tool is off')
        return undefined
      }
      log.warn(about, 'a broker does not say what it can do; it is taken to have what it had')
      return known.answer
    }
  }
  return { read, forget }
}
