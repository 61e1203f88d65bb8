import type { DomainPolicy, FailureTag, searchFetch } from '@tollgate/contracts'
import { openDeadline, type TrustedClient } from '@tollgate/http'
import type { z } from 'zod'
import { type Asked, type AskOptions, askProvider, type ProviderFailure } from '../ask.ts'
import { clean, clip, oneLine } from '../text.ts'
import type { FetchInstance } from './instances.ts'
import { judgeAddress } from './judge.ts'
import type { FetchAnswer, ReadPage } from './provider.ts'

export type FetchReply = z.input<typeof searchFetch.output>

export interface FetchWanted {
  url: string
  policy: DomainPolicy
  maxCharacters: number
}

const MOST_TITLE_CHARACTERS = 300
const MOST_TYPE_CHARACTERS = 100

/** One page by a fetch instance: judge the address, ask, judge where the page was found. Only a fired signal throws. */
export async function fetchBy(
  instance: FetchInstance,
  wanted: FetchWanted,
  limits: AskOptions,
  client: TrustedClient,
): Promise<FetchReply> {
  const { label } = instance
  const address = judgeAddress(wanted.url, wanted.policy)
  if (!address.ok) return { status: 'refused', label, why: address.why }
  const asked = await ask(instance, { ...wanted, url: address.url }, limits, client)
  const answer = asked.status === 'ok' ? asked.answer : asked
  return answer.status === 'failed' ? { ...answer, label } : handOver(instance, answer, wanted)
}

async function ask(
  { provider, apiBase, apiKey, options, slots, timeoutMs }: FetchInstance,
  { url, maxCharacters }: FetchWanted,
  { deadline, signal }: AskOptions,
  client: TrustedClient,
): Promise<Asked<FetchAnswer>> {
  const end = Math.min(deadline, Date.now() + timeoutMs)
  if (end <= Date.now()) return failed('timeout')
  const limit = openDeadline(end, signal)
  try {
    const request = provider.request({ url, maxCharacters, options }, { apiBase, apiKey })
    const asked = await slots.run(limit.signal, () => askProvider(client, request, provider, { deadline: end, signal }))
    return asked === 'full' ? failed('rate_limited') : asked
  } catch (thrown) {
    signal.throwIfAborted()
    if (limit.expired) return failed('timeout')
    throw thrown
  } finally {
    limit.end()
  }
}

function handOver(
  { label, provider }: FetchInstance,
  page: ReadPage,
  { policy, maxCharacters }: FetchWanted,
): FetchReply {
  const cost = page.cost === undefined ? {} : { reportedCost: page.cost }
  const found =
    provider.reportsFinalUrl && page.finalUrl !== undefined ? judgeAddress(page.finalUrl, policy) : undefined
  if (found?.ok === false) {
    const why = found.why === 'url_disallowed' ? 'redirect_disallowed' : found.why
    return { status: 'refused', label, why, ...cost }
  }
  const title = clip(oneLine(page.title ?? ''), MOST_TITLE_CHARACTERS)
  const contentType = clip(oneLine(page.contentType ?? ''), MOST_TYPE_CHARACTERS)
  return {
    status: 'ok',
    label,
    // cleaning makes a text shorter: what is looked at has to be longer than what is kept
    text: clip(clean(page.text, 4 * maxCharacters + 4_096), maxCharacters),
    ...(title !== '' && { title }),
    ...(contentType !== '' && { contentType }),
    ...(found?.ok && { finalUrl: found.url }),
    ...cost,
  }
}

const failed = (tag: FailureTag): ProviderFailure => ({ status: 'failed', tag })
