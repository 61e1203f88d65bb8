import type { TokenCounts } from '@tollgate/contracts'
import type { ToolActivity } from '../conversation/events.ts'
import type { Message } from '../conversation/turn.ts'
import type { ModelProvider } from '../models/provider.ts'
import type { CallContext } from '../tools/tool.ts'
import { systemMessage } from './hints.ts'
import type { Plan } from './plan.ts'
import { echoOf, providerCalls, wholeMessage, withoutCalls } from './provider-calls.ts'
import { exceeded, type Step } from './steps.ts'
import type { Tally } from './tally.ts'
import type { ModelCall } from './transcript.ts'

/** What the rounds of one attempt add to the client's messages, some of it for the model's backend alone. */
export interface Additions {
  /** As that backend is to go on from it: with its own calls, and each call's echo (PE-10..PE-12). */
  forBackend(): Message[]
  /** As anyone else may know it: without a trace of them (PE-16). */
  forAnyone(): Message[]
  /** What the backend did that no words have followed yet, so that another model may still be asked instead (PE-19). */
  takeUnsaid(): ToolActivity[]
  hasUnsaid(): boolean
  /** Records what the backend ran, and decides whether it may go on. */
  heard(step: Step, round: Round): Promise<BackendPart>
  /** What the model said in the round, and what our tools answered. */
  add(said: Message, results: readonly Message[], part: BackendPart): void
}

interface Round {
  /** Tokens of the round, where its upstream told. */
  spent: TokenCounts | undefined
  last: boolean
  at: CallContext
}

/** What the backend had of a round. */
export interface BackendPart {
  calls: readonly ModelCall[]
  /** Those of them that it waits for the echo of. */
  echoed: readonly ModelCall[]
  /** Why it is to use its tools no more, in words for the model. */
  refusal: string | undefined
}

export function openAdditions(
  { seat, turn }: Pick<Plan, 'seat' | 'turn'>,
  provider: Pick<ModelProvider, 'name'>,
  tally: Pick<Tally, 'toolRan'>,
): Additions {
  const backend = providerCalls(seat, provider, tally)
  const unsaid: ToolActivity[] = []
  let forBackend: Message[] = []
  let forAnyone: Message[] = []

  return {
    forBackend: () => forBackend,
    forAnyone: () => forAnyone,
    takeUnsaid: () => unsaid.splice(0),
    hasUnsaid: () => unsaid.length > 0,
    async heard({ made, goOn }, { spent, last, at }) {
      unsaid.push(...(await backend.made(made, at)))
      if (goOn && made.length > 0 && last) throw exceeded(turn.maxToolIterations)
      const refusal = goOn ? backend.refusal(made, spent) : undefined
      return { calls: made, echoed: goOn && refusal === undefined ? made : [], refusal }
    },
    add(said, results, { calls, echoed, refusal }) {
      const others = withoutCalls(said, calls) ?? []
      const told = refusal === undefined ? [] : [systemMessage(refusal)]
      forBackend =
        echoed.length > 0
          ? [...forBackend, wholeMessage(said), ...echoed.map(echoOf), ...results]
          : forBackend.concat(others, results, told)
      forAnyone = forAnyone.concat(others, results)
    },
  }
}
