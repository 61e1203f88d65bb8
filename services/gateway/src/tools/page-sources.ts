import type { Bus } from '@tollgate/bus'
import {
  BUILTIN_FETCH,
  builtinFetchLabel,
  type DomainPolicy,
  Fault,
  fetchPage,
  instancePriceKeys,
  type PriceKey,
  searchFetch,
  TOOL_RESULT_BYTES,
} from '@tollgate/contracts'
import type { FetchInstance } from './capabilities.ts'
import { type FetchProblem, instanceProblem, problemOf } from './fetch-problems.ts'
import type { CallContext } from './tool.ts'

/** A page as it was read, whoever read it. */
export interface PageText {
  requestedUrl: string
  finalUrl: string
  contentType?: string | undefined
  title?: string | undefined
  text: string
  notices: string[]
  reportedCost?: string | undefined
}

export type PageRead = { status: 'ok'; page: PageText } | { status: 'failed'; problem: FetchProblem; cause?: unknown }

/** Somebody who fetches pages for models, and what prices a call of theirs (P-06, P-24). */
export interface PageSource {
  label: string
  priceKeys: PriceKey[]
  read(url: string, policy: DomainPolicy, at: CallContext): Promise<PageRead>
}

/** The worker's own clocks are 5 s for the network and as much for extraction; the rest is waiting for a free slot. */
const FETCH_MS = 30_000
/** Kept free of page text for the lines over it and the notices under it. */
const FRAME_BYTES = 1_024

const builtin = { label: builtinFetchLabel, priceKeys: instancePriceKeys('fetch', 'builtin', BUILTIN_FETCH) }

export const priceKeysOf = (instance: FetchInstance | undefined): PriceKey[] =>
  instance ? instancePriceKeys('fetch', instance.provider, instance.instance) : builtin.priceKeys

export const pageSource = (bus: Bus, instance: FetchInstance | undefined): PageSource =>
  instance ? instanceSource(bus, instance) : builtinSource(bus)

const builtinSource = (bus: Bus): PageSource => ({
  ...builtin,
  async read(url, policy, { tenancy, signal, deadline }) {
    try {
      const page = await bus.call(
        fetchPage,
        { tenancy, url, policy, maxTextBytes: TOOL_RESULT_BYTES - FRAME_BYTES },
        { signal, deadline: Math.min(deadline, Date.now() + FETCH_MS) },
      )
      return page.status === 'ok'
        ? { status: 'ok', page }
        : { status: 'failed', problem: problemOf(page.failure, page.httpStatus) }
    } catch (thrown) {
      const cause = unanswered(thrown, signal)
      return { status: 'failed', problem: problemOf(cause.failure === 'timeout' ? 'timeout' : 'internal'), cause }
    }
  },
})

/** The instance's own timeout ends a call, where its key is known (F-44). */
const instanceSource = (bus: Bus, { label, instance, provider }: FetchInstance): PageSource => ({
  label,
  priceKeys: instancePriceKeys('fetch', provider, instance),
  async read(url, policy, { tenancy, signal, deadline }) {
    try {
      const answer = await bus.call(
        searchFetch,
        // as many characters as there are bytes: what the provider itself cut is too long for the result, and seen as cut
        { tenancy, instance, url, policy, maxCharacters: TOOL_RESULT_BYTES },
        { signal, deadline },
      )
      if (answer.status === 'refused') return { status: 'failed', problem: problemOf(answer.why) }
      if (answer.status === 'failed') return { status: 'failed', problem: instanceProblem(answer) }
      const { finalUrl = url, ...page } = answer
      return { status: 'ok', page: { ...page, requestedUrl: url, finalUrl, notices: [] } }
    } catch (thrown) {
      const cause = unanswered(thrown, signal)
      if (cause.failure !== 'timeout' && cause.failure !== 'unavailable') throw cause
      const tag = cause.failure === 'timeout' ? 'timeout' : 'network'
      return { status: 'failed', problem: instanceProblem({ tag }), cause }
    }
  },
})

/** Nobody answered in time, or something broke on the way; a client who left ends the call. */
function unanswered(thrown: unknown, signal: AbortSignal): Fault {
  const cause = Fault.from(thrown)
  if (signal.aborted) throw cause
  return cause
}
