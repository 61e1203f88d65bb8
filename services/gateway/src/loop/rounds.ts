import { type Context, context, type Span, SpanStatusCode, trace } from '@opentelemetry/api'
import { Fault, type TokenCounts } from '@tollgate/contracts'
import { histogram, type Log } from '@tollgate/telemetry'
import type { AnswerEvent, ModelEvent } from '../conversation/events.ts'
import { type Tell, tellAll } from '../conversation/tell.ts'
import type { Message, ModelRequest } from '../conversation/turn.ts'
import type { ModelProvider } from '../models/provider.ts'
import type { CallContext } from '../tools/tool.ts'
import { openAdditions } from './additions.ts'
import { numberBlocks } from './block-numbers.ts'
import { isHidden, unknownYet, withFound } from './deferral.ts'
import { type MixedTurns, textOf } from './mixed-turns.ts'
import { lastOffer, offer, withoutBackend } from './offers.ts'
import type { Plan } from './plan.ts'
import { decide, staysHere } from './steps.ts'
import type { Tally } from './tally.ts'
import type { Toolbox } from './toolbox.ts'
import { type ModelCall, openRoom, openTranscript, resultMessage } from './transcript.ts'
import type { UsageMeter } from './usage.ts'

const tracer = trace.getTracer('@tollgate/gateway')
const roundsOfTurn = histogram('turn_rounds', 'Model calls of one request', {}, [1, 2, 3, 4, 5, 7, 10, 15, 20, 25])

export interface Conversation {
  provider: ModelProvider
  model: string
  plan: Plan
  toolbox: Toolbox
  usage: UsageMeter
  mixedTurns: MixedTurns
  tally: Pick<Tally, 'toolRan'>
  log: Log
  added?: ((messages: Message[]) => void) | undefined
  /** Hears what an answer broke off for. */
  failed?: (thrown: unknown) => void
  at: CallContext
}

/**
 * The one loop: asks the model, runs the calls that are ours, and asks again, until it answers or calls the client's
 * tools. What comes out is one answer: one start, the blocks of all rounds under one numbering without our calls,
 * what the gateway did between them, one usage, one finish.
 */
export async function rounds(conversation: Conversation, tell: Tell<AnswerEvent>): Promise<void> {
  const { provider, plan, toolbox, usage, mixedTurns, tally, at } = conversation
  const additions = openAdditions(plan, provider, tally)
  let offering = plan
  const room = openRoom()
  const shown = numberBlocks((call) => staysHere(call, offering))
  let start: (ModelEvent & { type: 'start' }) | undefined
  let started = false

  /** What goes out before anything else, and what waited for that. */
  function due(): AnswerEvent[] {
    const container = started ? undefined : toolbox.container()
    const first = started ? undefined : start
    started = true
    return [
      ...(container ? [{ type: 'container' as const, container }] : []),
      ...(first ? [first] : []),
      ...additions.takeUnsaid(),
    ]
  }

  const isDue = (): boolean => !started || additions.hasUnsaid()

  for (let round = 1; ; round += 1) {
    const request = requestOf(conversation, offering, [...plan.messages, ...additions.forBackend()], round)
    const said = openTranscript(room)
    let spent: TokenCounts | undefined
    const { span, inside } = startRound(conversation, round)
    try {
      usage.beginRound(request)
      const hear = (event: ModelEvent) => {
        usage.hear(event)
        said.take(event)
        if (event.type === 'start') {
          start ??= { ...event, provider: provider.name }
          return undefined
        }
        if (event.type === 'usage') spent = event.tokens
        const block = shown.pass(event)
        // nothing goes out before the model has really begun, so that an early failure still is a status (BR-031)
        if ((block || plan.seat === undefined) && isDue()) return tellAll(block ? [...due(), block] : due(), tell)
        return block && tell(block)
      }
      await context.with(inside, () => provider.ask(request, at, hear))
      const finish = said.finish()
      usage.endRound()

      const last = isLast(plan, round)
      const calls = said.calls()
      tellUnreadable(conversation, calls)
      const step = decide(calls, finish, offering, last)
      const ofBackend = await additions.heard(step, { spent, last, at })
      const results: Message[] = []
      const found: string[] = []
      if (step.run.length > 0) await tellAll(due(), tell)
      for (const call of step.run) {
        if (isHidden(offering, call.name)) {
          results.push(unknownYet(call))
          continue
        }
        const { outcome } = await context.with(inside, () => toolbox.run(call, at, tell))
        results.push(resultMessage(call.id, outcome.text, outcome.isError))
        if (outcome.shown.kind === 'tool_search') found.push(...outcome.shown.found)
      }
      additions.add(said.message(), results, ofBackend)
      offering = withFound(offering, found)
      if (ofBackend.refusal !== undefined) offering = withoutBackend(offering)
      if (step.goOn) {
        shown.nextRound()
        continue
      }
      await tellAll(due(), tell)
      const added = additions.forAnyone()
      if (step.handOver.length > 0 && added.length > 1) {
        // without the contents of files, which the client's next request will not have either
        const asked = plan.turn.messages.findLast(({ role }) => role === 'user')
        const words = added.flatMap((message) => (message.role === 'assistant' ? textOf(message) : [])).join('')
        mixedTurns.keep(at.tenancy, { asked, shown: { text: words, calls: step.handOver }, replay: added })
      }
      conversation.added?.(added)
      roundsOfTurn.record(round, {})
      const report = usage.report()
      if (report) await tell(report)
      await tell(finish)
      return
    } catch (thrown) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: Fault.from(thrown).failure })
      conversation.failed?.(thrown)
      throw thrown
    } finally {
      span.end()
    }
  }
}

const isLast = ({ turn }: Plan, round: number): boolean => round >= turn.maxToolIterations

function requestOf({ provider, model }: Conversation, plan: Plan, messages: Message[], round: number): ModelRequest {
  const offered = isLast(plan, round) ? lastOffer(plan, messages, round, provider.wire) : offer(plan, messages, round)
  return { turn: plan.turn, model, stream: plan.turn.stream, ...offered }
}

/** A model that writes no usable arguments is known by its name alone, so that it is looked for there (PE-54). */
function tellUnreadable({ provider, model, plan, log, at }: Conversation, calls: readonly ModelCall[]): void {
  for (const { name, arguments: text } of calls) {
    if (!plan.owned.has(name) || isJson(text)) continue
    const { request } = at.tenancy
    const seat = plan.seat?.name ?? `${provider.name}:${model}`
    log.warn({ request, seat, provider: provider.name, model, tool: name }, 'a model wrote arguments that are no JSON')
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function startRound({ provider, model, at }: Conversation, round: number): { span: Span; inside: Context } {
  const span = tracer.startSpan('round', {
    attributes: {
      'gen_ai.provider.name': provider.name,
      'gen_ai.request.model': model,
      'tollgate.round': round,
      'tollgate.attempt': at.tenancy.attempt ?? 0,
    },
  })
  return { span, inside: trace.setSpan(context.active(), span) }
}
