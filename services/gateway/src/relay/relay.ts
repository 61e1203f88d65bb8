import type { Fault, TokenCounts } from '@tollgate/contracts'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { actFor } from '../auth/acting-user.ts'
import { tenancyOf } from '../auth/tenancy.ts'
import type { AnswerNeeds } from '../conversation/answer.ts'
import type { JsonObject } from '../conversation/turn.ts'
import { endingOf, faultOf } from '../loop/answering.ts'
import type { Candidate, PassedOver } from '../loop/chain.ts'
import { priceChain } from '../loop/priced.ts'
import { reserve, type Tally } from '../loop/tally.ts'
import { noTokens, tokensOf } from '../loop/usage.ts'
import { openWalk } from '../loop/walk.ts'
import type { CallLimits, ModelProvider, RelayedPath } from '../models/provider.ts'
import { Uncarried } from '../models/uncarried.ts'
import { faultOfFrame } from '../models/upstream-errors.ts'
import { brokenAnswer, type Origin } from '../models/upstream-fault.ts'
import { candidatesOf } from '../routing/candidates.ts'

export interface Relay {
  path: RelayedPath
  /** The member of an answer without which it is none. */
  holds: 'data' | 'results'
}

type Relaying = ModelProvider & Required<Pick<ModelProvider, 'relay'>>
interface RelayAttempt {
  number: number
  provider: Relaying
  model: string
}

/**
 * A request that passes through to a provider as it is and comes back so, priced by its model's row: reserved, tried on
 * each candidate and settled as a completion is. What the provider does not count is estimated (P-50).
 */
export async function relay(
  needs: Pick<
    AnswerNeeds,
    'bus' | 'log' | 'settings' | 'identities' | 'models' | 'routing' | 'rateLimit' | 'coolDowns'
  >,
  { path, holds }: Relay,
  body: JsonObject & { model: string; user?: string | undefined },
  { bodyText, identity, id }: FastifyRequest,
  { signal, deadline }: CallLimits,
): Promise<Buffer> {
  const { bus, log, settings } = needs
  const acting = await actFor(identity, body.user, { dialect: 'chat', ...needs })
  const route = needs.routing.route(body.model)
  const chain = candidatesOf(route, body.model, acting, needs.models, 'chat').map((one, at) => attemptOf(one, at, path))
  const tenancy = tenancyOf(acting, id)
  const { budgetExempt } = acting
  const estimate = { inputTokens: tokensOf(bodyText.length), outputTokens: 0 }
  const asking = { tenancy, budgetExempt, deadline, estimate, toolsOf: () => [] }
  const { attempts, dearest } = await priceChain<RelayAttempt>(bus, chain, asking)
  const first = attempts.find((attempt) => 'relay' in attempt.provider) ?? dearest
  const meter = openMeter(estimate.inputTokens, settings.streamMissingUsagePolicy === 'allow_free')
  const tally = await reserve(
    { bus, log, tenancy, usage: meter },
    {
      endpoint: `/api/v1${path}`,
      model: { name: first.model, provider: first.provider.name },
      pricedLike: { name: dearest.model, provider: dearest.provider.name },
      tools: [],
      estimate,
      budgetExempt,
      deadline,
      signal,
    },
  )
  const walk = openWalk<RelayAttempt>({
    candidates: attempts,
    rules: route.rules,
    coolDowns: needs.coolDowns,
    tally,
    usage: meter,
    log,
    request: { id: tenancy.request, signal, deadline },
  })
  try {
    needs.rateLimit.take(acting)
    for (;;) {
      const { provider, model } = walk.current
      const attempt = walk.start()
      walk.asking()
      try {
        meter.ask()
        const answer = await provider.relay(path, JSON.stringify({ ...body, model }), {
          signal: attempt.signal,
          deadline,
        })
        meter.count(readAnswer(answer, holds, { name: provider.name, wire: provider.wire, hidden: [] }))
        walk.began()
        walk.answered()
        await tally.settle({ status: 'success' })
        return answer
      } catch (thrown) {
        walk.failed(thrown)
      } finally {
        walk.over()
      }
    }
  } catch (thrown) {
    const fault = faultOf(thrown, signal)
    await settleFailed(tally, fault, (err) =>
      log.error({ request: tenancy.request, err }, 'a request could not be settled'),
    )
    throw fault
  }
}

/** The hold stays where it cannot be settled: the sweep gives it back. */
const settleFailed = (tally: Tally, fault: Fault, tell: (err: unknown) => void): Promise<void> =>
  tally.settle(endingOf(fault)).catch(tell)

function attemptOf({ provider, model, refused }: Candidate, number: number, path: string): RelayAttempt | PassedOver {
  if (refused) return { number, provider, model, refused }
  if (hasRelay(provider)) return { number, provider, model }
  const why = `the provider of this model has no ${path.slice(1)}`
  return { number, provider, model, refused: new Uncarried('invalid_request', why) }
}

const hasRelay = (provider: ModelProvider): provider is Relaying => provider.relay !== undefined

const count = z.int().nonnegative().optional().catch(undefined)
const answered = z.looseObject({
  error: z.unknown().optional(),
  data: z.array(z.unknown()).optional(),
  results: z.array(z.unknown()).optional(),
  usage: z.object({ prompt_tokens: count, total_tokens: count }).optional().catch(undefined),
})

/** What the provider counted; throws where its 2xx holds an error or no answer. */
function readAnswer(bytes: Buffer, holds: Relay['holds'], origin: Origin): number | undefined {
  let json: unknown
  try {
    json = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw brokenAnswer(bytes.length === 0 ? 'empty' : 'unreadable', origin)
  }
  const read = answered.safeParse(json).data
  if (read?.error) throw faultOfFrame(origin, json)
  if (read?.[holds] === undefined) throw brokenAnswer('unreadable', origin, new Error(`no ${holds}`))
  return read.usage?.prompt_tokens ?? read.usage?.total_tokens
}

function openMeter(estimated: number, free: boolean) {
  let asked = false
  let counted: number | undefined
  let done = false
  const tokens = (input: number): TokenCounts => ({ ...noTokens, input })
  return {
    ask() {
      asked = true
    },
    count(reported: number | undefined) {
      done = true
      counted = reported
    },
    asked: () => asked,
    forgetAttempt() {},
    /** A request that no provider answered costs nothing. */
    total() {
      if (!done) return { tokens: noTokens, estimated: false }
      if (counted !== undefined) return { tokens: tokens(counted), estimated: false }
      return free ? { tokens: noTokens, estimated: false } : { tokens: tokens(estimated), estimated: true }
    },
  }
}
