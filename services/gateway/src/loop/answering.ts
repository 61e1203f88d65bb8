import { Fault } from '@tollgate/contracts'
import type { AnswerEvent } from '../conversation/events.ts'
import type { Tell } from '../conversation/tell.ts'
import { toolFiles } from '../files/tool-files.ts'
import type { CallContext } from '../tools/tool.ts'
import type { Admission, LoopNeeds, TurnRequest } from './admission.ts'
import { attempts } from './attempts.ts'
import { searchedIn } from './deferral.ts'
import { countWebCalls } from './limits.ts'
import { nestedSearch } from './nested-search.ts'
import { offeredBy, prepared } from './prepared.ts'
import { openProviderCode } from './provider-code.ts'
import { rounds } from './rounds.ts'
import { type Ending, errorText } from './tally.ts'
import { openToolbox } from './toolbox.ts'

/**
 * Tells one answer as one stream of events, from the first candidate that gives it. It settles the request on every way
 * out: before its last event, and when it fails or is cancelled (BR-149).
 */
export async function answering(
  { bus, log, settings, mixedTurns, files, providerCopies, toolRefusals }: LoopNeeds,
  { turn, tenancy, signal, deadline, added, attachments, servers }: TurnRequest,
  { attempts: chain, walk, capabilities, usage, tally }: Admission,
  tell: Tell<AnswerEvent>,
): Promise<void> {
  const webCalls = countWebCalls(settings)
  /** Whether the client knows of a sandbox that is kept. */
  let told = false
  const ofTools = files && { files: toolFiles(files.rows, attachments?.files ?? [], log) }
  const toolbox = openToolbox({ bus, log, settings, capabilities, webCalls, ...ofTools }, tally, log, turn.maxToolCalls)
  const atProvider = openProviderCode(
    { settings, files, providerCopies, log },
    { attachments, tenancy, signal, deadline },
  )
  try {
    const offered = await offeredBy(servers, turn, chain)
    await attempts(
      walk,
      async ({ number, provider, model, plan: planned }, signal, tellOn) => {
        const limits = { signal, deadline }
        const plan = await atProvider.given(prepared(planned, offered, settings), provider, limits)
        const deferred = searchedIn(plan)
        const at: CallContext = { tenancy: { ...tenancy, attempt: number }, signal, deadline, deferred }
        const asked = { provider, model, plan, toolbox, usage, mixedTurns, tally, log, at }
        webCalls.serve(plan, capabilities)
        await toolbox.open(plan.owned.values(), at)
        walk.asking()
        const failed = (thrown: unknown) => toolRefusals?.note(thrown, plan, model)
        await rounds({ ...asked, added, failed, at: { ...at, nested: nestedSearch(asked) } }, tellOn)
      },
      turn,
      hear,
    )
  } catch (thrown) {
    const fault = faultOf(thrown, signal)
    await tally.settle(endingOf(fault)).catch(unsettled)
    throw fault
  } finally {
    toolbox.close({ discard: !told })
    atProvider.close()
  }

  function hear(event: AnswerEvent): Promise<void> | undefined {
    if (event.type === 'container') {
      // a whole answer names it at its end, as it is then
      if (!turn.stream) return undefined
      told = true
    }
    atProvider.hear(event)
    return event.type === 'finish' ? finish(event) : tell(event)
  }

  async function finish(event: AnswerEvent): Promise<void> {
    await tally.settle({ status: 'success' })
    await atProvider.done()
    const container = await toolbox.release()
    if (container && !turn.stream) await tell({ type: 'container', container })
    await tell(event)
  }

  /** The hold stays, and with it what the tools cost: the sweep settles it. */
  function unsettled(thrown: unknown): void {
    log.error({ request: tenancy.request, err: thrown }, 'a request could not be settled')
  }
}

/** What ended the request: when its signal fired, everything thrown after that only follows from it. */
export const faultOf = (thrown: unknown, signal: AbortSignal): Fault =>
  signal.aborted && signal.reason instanceof Fault ? signal.reason : Fault.from(thrown)

export const endingOf = (fault: Fault): Ending => ({
  status: fault.failure === 'cancelled' ? 'cancelled' : 'error',
  error: errorText(fault),
})
