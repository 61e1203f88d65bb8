import { type Context, context, type Span, SpanStatusCode, trace } from '@opentelemetry/api'
import { Fault } from '@tollgate/contracts'
import { histogram } from '@tollgate/telemetry'
import type { AnswerEvent, ModelEvent } from '../conversation/events.ts'
import type { Message, ModelRequest } from '../conversation/turn.ts'
import type { ModelProvider } from '../models/provider.ts'
import type { CallContext } from '../tools/tool.ts'
import { numberBlocks } from './block-numbers.ts'
import { type MixedTurns, textOf } from './mixed-turns.ts'
import { lastOffer, offer } from './offers.ts'
import type { Plan } from './plan.ts'
import { within } from './spans.ts'
import { decide } from './steps.ts'
import type { Toolbox } from './toolbox.ts'
import { openTranscript, resultMessage } from './transcript.ts'
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
  added?: ((messages: Message[]) => void) | undefined
  at: CallContext
}

/**
 * The one loop: asks the model, runs the calls that are ours, and asks again, until it answers or calls the client's
 * tools. What comes out is one answer: one start, the blocks of all rounds under one numbering without our calls,
 * what the gateway did between them, one usage, one finish.
 */
export async function* rounds(conversation: Conversation): AsyncGenerator<AnswerEvent> {
  const { provider, plan, toolbox, usage, mixedTurns, at } = conversation
  const shown = numberBlocks((name) => plan.owned.has(name))
  let start: (ModelEvent & { type: 'start' }) | undefined
  let started = false
  /** What the loop adds to the client's messages, and the words of it that the client saw. */
  let added: Message[] = []
  let text = ''

  for (let round = 1; ; round += 1) {
    const request = requestOf(conversation, [...plan.messages, ...added], round)
    const said = openTranscript()
    const { span, inside } = startRound(conversation, round)
    try {
      usage.beginRound(request)
      for await (const event of within(inside, provider.ask(request, at))) {
        usage.hear(event)
        said.take(event)
        if (event.type === 'start') {
          start ??= { ...event, provider: provider.name }
          continue
        }
        // nothing goes out before the model has really begun, so that an early failure still is a status (BR-031)
        if (!started) {
          const container = toolbox.container()
          if (container) yield { type: 'container', container }
          if (start) yield start
        }
        started = true
        const block = shown.pass(event)
        if (block) yield block
      }
      const finish = said.finish()
      usage.endRound()

      const step = decide(said.calls(), finish, plan, isLast(plan, round))
      const results: Message[] = []
      for (const call of step.run) {
        const { outcome } = yield* within(inside, toolbox.run(call, at))
        results.push(resultMessage(call.id, outcome.text, outcome.isError))
      }
      const message = said.message()
      added = [...added, message, ...results]
      text += textOf(message)
      if (step.goOn) {
        shown.nextRound()
        continue
      }
      if (step.handOver.length > 0 && added.length > 1) {
        // without the contents of files, which the client's next request will not have either
        const asked = plan.turn.messages.findLast(({ role }) => role === 'user')
        mixedTurns.keep(at.tenancy, { asked, shown: { text, calls: step.handOver }, replay: added })
      }
      conversation.added?.(added)
      roundsOfTurn.record(round, {})
      const report = usage.report()
      if (report) yield report
      yield finish
      return
    } catch (thrown) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: Fault.from(thrown).failure })
      throw thrown
    } finally {
      span.end()
    }
  }
}

const isLast = ({ turn }: Plan, round: number): boolean => round >= turn.maxToolIterations

function requestOf({ provider, model, plan }: Conversation, messages: Message[], round: number): ModelRequest {
  const offered = isLast(plan, round) ? lastOffer(plan, messages, round, provider.wire) : offer(plan, messages, round)
  return { turn: plan.turn, model, stream: plan.turn.stream, ...offered }
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
