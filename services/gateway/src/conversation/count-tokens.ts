import type { FastifyRequest } from 'fastify'
import { actFor } from '../auth/acting-user.ts'
import { tenancyOf } from '../auth/tenancy.ts'
import { parseCountTokens } from '../dialects/messages/parse.ts'
import { findAttachments } from '../files/attachments.ts'
import { viewOf } from '../files/rows.ts'
import { planEach } from '../loop/admission.ts'
import { offeredBy, prepared } from '../loop/prepared.ts'
import { codePlaceOf } from '../loop/provider-code.ts'
import { tokensOf } from '../loop/usage.ts'
import type { CallLimits } from '../models/provider.ts'
import { UpstreamFault } from '../models/upstream-fault.ts'
import { candidatesOf } from '../routing/candidates.ts'
import type { AnswerNeeds } from './answer.ts'
import type { ModelRequest, Part } from './turn.ts'

/** Statuses by which a compatible server says that it does not count. */
const NOT_SERVED: ReadonlySet<number | undefined> = new Set([404, 405, 501])
/** Characters that stand for an image, whatever its size in bytes. */
const IMAGE_CHARACTERS = 6_000

/**
 * The input tokens of a request, with the gateway's tools and hints as they would be sent: the provider's own count
 * where it gives one, else an estimate of four characters to a token (BR-029). Costs nothing and is not billed.
 */
export async function countTokens(
  needs: AnswerNeeds,
  { body, bodyText, headers, identity, id }: FastifyRequest,
  limits: CallLimits,
): Promise<number> {
  const turn = parseCountTokens(body, bodyText.length, headers)
  const acting = await actFor(identity, turn.user, { dialect: 'messages', ...needs })
  const candidates = candidatesOf(needs.routing.route(turn.model), turn.model, acting, needs.models, turn.dialect)
  const tenancy = tenancyOf(acting, id)
  const attachments = await findAttachments(needs.files, viewOf(acting), turn, limits.signal)
  const planned = await planEach(needs, { turn, headers, bodyText, tenancy, candidates })
  const { number, provider, model } = planned.first
  needs.rateLimit.take(acting)
  const servers = await needs.openServers(turn.mcpServers, tenancy, limits)
  const offered = await offeredBy(servers, turn, planned.attempts).finally(() => servers?.close())
  const plan = prepared(planned.first.plan, offered, needs.settings)
  const { tools, toolChoice } = plan
  const { messages } = await attachments.show(plan.messages, codePlaceOf(plan, provider))
  const { parallelToolCalls } = plan.turn
  const asked: ModelRequest = { turn: plan.turn, model, messages, tools, toolChoice, parallelToolCalls, stream: false }
  try {
    if (provider.countTokens) return await provider.countTokens(asked, limits)
  } catch (thrown) {
    const unserved = thrown instanceof UpstreamFault && NOT_SERVED.has(thrown.upstreamStatus)
    if (candidates[number]?.type === 'anthropic' || !unserved) throw thrown
  }
  return estimate(asked)
}

function estimate({ messages, tools }: ModelRequest): number {
  const said = messages.flatMap(({ parts }) => parts).reduce((sum, part) => sum + charactersOf(part), 0)
  return tokensOf(said + JSON.stringify(tools.map(({ raw }) => raw)).length)
}

function charactersOf(part: Part): number {
  switch (part.type) {
    case 'text':
    case 'thinking':
    case 'result':
      return part.text.length
    case 'call':
      return part.name.length + part.arguments.length
    case 'image':
      return IMAGE_CHARACTERS
    default:
      return JSON.stringify(part).length
  }
}
