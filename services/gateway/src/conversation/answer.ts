import type { IncomingHttpHeaders } from 'node:http'
import { Fault, type HeldContainer, type Tenancy } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { actFor } from '../auth/acting-user.ts'
import type { Identities } from '../auth/identities.ts'
import type { Identity } from '../auth/identity.ts'
import type { RateLimit } from '../auth/rate-limit.ts'
import { tenancyOf } from '../auth/tenancy.ts'
import type { AnswerWriter } from '../dialects/answer-writer.ts'
import { levelOf } from '../errors.ts'
import { findAttachments } from '../files/attachments.ts'
import { viewOf } from '../files/rows.ts'
import { type Admission, admit, type LoopNeeds, type TurnRequest } from '../loop/admission.ts'
import { answering, endingOf } from '../loop/answering.ts'
import { hasRounds } from '../loop/plan.ts'
import { copiesFiles } from '../loop/provider-code.ts'
import type { OpenServers, RequestServers } from '../mcp-client/servers.ts'
import { canForward } from '../models/provider.ts'
import type { ModelRegistry } from '../models/registry.ts'
import { candidatesOf } from '../routing/candidates.ts'
import type { Routing } from '../routing/routing.ts'
import { type Answer, collectAnswer } from './collect.ts'
import { type EventStream, openEventStream } from './event-stream.ts'
import type { AnswerEvent } from './events.ts'
import { forwardAnswer } from './forward-answer.ts'
import type { RequestEnd } from './request-end.ts'
import type { Tell } from './tell.ts'
import type { Dialect, JsonObject, Message, Turn } from './turn.ts'

/** A client dialect, as the one path of every answer knows it. */
export interface ClientDialect {
  name: Dialect
  /** The path of its API, as it stands in usage rows. */
  endpoint: string
  parse(body: unknown, bodyCharacters: number, headers: IncomingHttpHeaders): Turn
  writer(turn: Turn): AnswerWriter
  render(answer: Answer, turn: Turn): JsonObject
  /** Of a dialect whose answers can be gone on from. */
  memory?: Memory
  /** A failure before the first byte. */
  error(thrown: unknown): { status: number; headers: Record<string, string>; body: object }
}

/** What one request goes on from, and what its answer leaves for the next. */
export interface Memory {
  /** The answer may pass unread: nothing of it is kept, and it names nothing that it goes on from. */
  mayPass(): boolean
  /** The turn that was parsed, with what it only names put in its place. */
  recall(whose: Tenancy): Promise<Turn>
  /** What the loop added to the client's messages, the final answer included; comes before the last event. */
  added(messages: Message[]): void
  /** Tells the same events; the last one waits until the answer is kept. */
  keep(tell: Tell<AnswerEvent>, request: TurnRequest): Tell<AnswerEvent>
}

export interface AnswerNeeds extends LoopNeeds {
  identities: Identities
  models: ModelRegistry
  routing: Routing
  rateLimit: RateLimit
  openServers: OpenServers
}

/** A request on its way, with everything that writing its answer takes. */
export interface Exchange {
  needs: AnswerNeeds
  dialect: ClientDialect
  reply: FastifyReply
  request: TurnRequest
}

/** Answers one request of one dialect: decides in the order of R-65, then streams, collects or forwards. */
export async function answer(
  needs: AnswerNeeds,
  dialect: ClientDialect,
  { body, bodyText, headers, identity, id }: FastifyRequest,
  reply: FastifyReply,
  { signal, deadline }: RequestEnd,
): Promise<void> {
  let servers: RequestServers | undefined
  try {
    const parsed = dialect.parse(body, bodyText.length, headers)
    const acting = await actFor(identity, parsed.user, { dialect: dialect.name, ...needs })
    const route = needs.routing.route(parsed.model)
    const candidates = candidatesOf(route, parsed.model, acting, needs.models, dialect.name)
    const tenancy = tenancyOf(acting, id)
    const turn = (await dialect.memory?.recall(tenancy)) ?? parsed
    const attachments = await findAttachments(needs.files, viewOf(acting), turn, signal)
    servers = await needs.openServers(turn.mcpServers, tenancy, { signal, deadline })
    const request: TurnRequest = {
      turn,
      attachments,
      servers,
      bodyText,
      headers,
      candidates,
      rules: route.rules,
      tenancy,
      budgetExempt: acting.budgetExempt,
      endpoint: dialect.endpoint,
      signal,
      deadline,
      ...(dialect.memory && { added: dialect.memory.added }),
    }
    const exchange: Exchange = { needs, dialect, reply, request }
    const admission = await admit(needs, request)
    await limitRate(needs, acting, admission)
    await respond(exchange, admission)
  } catch (thrown) {
    await refuse(needs, dialect, reply, thrown)
  } finally {
    servers?.close()
  }
}

/** The last thing that can refuse; the money set aside goes back. */
async function limitRate({ rateLimit }: AnswerNeeds, acting: Identity, { tally }: Admission): Promise<void> {
  try {
    rateLimit.take(acting)
  } catch (thrown) {
    await tally.settle(endingOf(Fault.from(thrown)))
    throw thrown
  }
}

/**
 * Bytes go through as they are where no tool runs here and the provider speaks what the client reads. Of a chain that
 * holds for every candidate that is asked before one for which it does not.
 */
async function respond(exchange: Exchange, admission: Admission): Promise<void> {
  const { walk } = admission
  while (exchange.request.servers === undefined) {
    const { provider, plan } = walk.current
    if (exchange.needs.files !== undefined && copiesFiles(plan, provider)) break
    if (hasRounds(plan) || !canForward(provider, plan.turn) || exchange.dialect.memory?.mayPass() === false) break
    if (await forwardAnswer(exchange, admission)) return
  }
  await (exchange.request.turn.stream ? streamAnswer : collectedAnswer)(exchange, admission)
}

async function collectedAnswer({ needs, dialect, reply, request }: Exchange, admission: Admission): Promise<void> {
  const whole = await collectAnswer((tell) => answering(needs, request, admission, kept(tell, dialect, request)))
  const text = JSON.stringify(dialect.render(whole, request.turn))
  nameContainer(reply, whole.container)
  void reply.code(200).type('application/json; charset=utf-8').send(text)
}

/** Nothing is written before the first event, so that whatever fails until then still has a status of its own. */
async function streamAnswer({ needs, dialect, reply, request }: Exchange, admission: Admission): Promise<void> {
  const { turn, signal } = request
  const writer = dialect.writer(turn)
  const everyMs = needs.settings.streamingKeepaliveIntervalMs
  const out: { stream?: EventStream } = {}
  const open = () => (out.stream ??= openEventStream(reply, { keepalive: writer.keepalive, everyMs, signal }))
  const write = (event: AnswerEvent) => {
    if (out.stream === undefined && event.type === 'container') nameContainer(reply, event.container)
    return open().write(writer.push(event))
  }
  try {
    await answering(needs, request, admission, kept(write, dialect, request))
    open().end(writer.end())
  } catch (thrown) {
    if (out.stream === undefined) throw thrown
    logBreak(needs.log, request, Fault.from(thrown))
    out.stream.end(writer.fail())
  }
}

const kept = (tell: Tell<AnswerEvent>, { memory }: ClientDialect, request: TurnRequest): Tell<AnswerEvent> =>
  memory ? memory.keep(tell, request) : tell

/** C-06: in every dialect, streamed or not. */
function nameContainer(reply: FastifyReply, container: HeldContainer | undefined): void {
  if (container)
    reply.headers({ 'otari-container-id': container.id, 'otari-container-expires-at': container.expiresAt })
}

/** That a client left is in the access log already. */
export function logBreak(log: Log, { tenancy }: TurnRequest, fault: Fault): void {
  if (fault.failure !== 'cancelled') log.warn({ request: tenancy.request, err: fault }, 'a stream broke off')
}

/** A failure before the first byte. A client that left is told nothing, but its log line and its settlement are the same. */
async function refuse(
  { log }: AnswerNeeds,
  dialect: ClientDialect,
  reply: FastifyReply,
  thrown: unknown,
): Promise<void> {
  const { status, headers, body } = dialect.error(thrown)
  if (status >= 500) log[levelOf(status)]({ request: reply.request.id, status, err: thrown }, 'request failed')
  void reply.code(status).headers(headers).type('application/json; charset=utf-8').send(JSON.stringify(body))
}
