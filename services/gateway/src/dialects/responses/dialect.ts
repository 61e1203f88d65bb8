import type { Log } from '@tollgate/telemetry'
import type { ClientDialect } from '../../conversation/answer.ts'
import { type Answer, answerCollector } from '../../conversation/collect.ts'
import type { AnswerEvent } from '../../conversation/events.ts'
import type { Tell } from '../../conversation/tell.ts'
import type { Message, Turn } from '../../conversation/turn.ts'
import type { TurnRequest } from '../../loop/admission.ts'
import type { GatewaySettings } from '../../settings.ts'
import type { Owner, ResponseStore } from '../../stored-responses/store.ts'
import { errorAnswer } from '../error-answer.ts'
import type { Identity } from './envelope.ts'
import { gatewayItems } from './gateway-items.ts'
import { mint } from './ids.ts'
import { keepable } from './keep.ts'
import { openOutput } from './output.ts'
import { type ParsedRequest, parseResponses } from './parse.ts'
import { recalled } from './recall.ts'
import { renderResponse } from './render.ts'
import { responsesStream } from './stream.ts'

export interface DialectNeeds {
  /** Where the client can reach this gateway. */
  baseUrl: string
  settings: Pick<GatewaySettings, 'responsesRetentionDays'>
  store: ResponseStore
  log: Log
}

/** The dialect for one request: what its answer is known by is decided once, whoever shows it. */
export function responsesDialect(needs: DialectNeeds): ClientDialect {
  let asked: Asked | undefined
  const known = (): Asked => {
    if (asked === undefined) throw new Error('an answer is shown to a request that was never read')
    return asked
  }

  return {
    name: 'responses',
    endpoint: '/api/v1/responses',
    parse(body, bodyCharacters) {
      const request = parseResponses(body, bodyCharacters)
      asked = openAsked(request, needs)
      return request.turn
    },
    memory: {
      mayPass() {
        const { identity, request } = known()
        return !identity.kept && request.previous === undefined
      },
      async recall({ organization, workspace, user }) {
        const { request } = known()
        const { turn, input } = await recalled(request, needs.store, { organization, workspace, user })
        request.input = input
        return turn
      },
      added: (messages) => {
        known().added = messages
      },
      keep: (tell, request) => (known().identity.kept ? keeping(known(), tell, request, needs) : tell),
    },
    writer: (turn) => responsesStream(known().identity, turn, known().output()),
    render: (answer, turn) => renderResponse(answer, known().identity, turn, known().output()),
    error: (thrown) => errorAnswer(thrown, 'responses'),
  }
}

interface Asked {
  request: ParsedRequest
  identity: Identity
  added: Message[]
  /** One more reading of the answer, which gives its items the same ids. */
  output(): ReturnType<typeof openOutput>
}

function openAsked(request: ParsedRequest, { baseUrl, settings }: DialectNeeds): Asked {
  const { turn, include, previous, store } = request
  const kept = store && settings.responsesRetentionDays > 0
  const shows = gatewayItems(turn, include, baseUrl)
  const ids: string[] = []
  return {
    request,
    identity: { id: mint('response'), createdAt: Math.floor(Date.now() / 1_000), kept, previous },
    added: [],
    output: () => openOutput(shows, ids),
  }
}

/** Tells the same events, the last of them when the answer is kept. */
function keeping(
  asked: Asked,
  tell: Tell<AnswerEvent>,
  { turn, tenancy }: TurnRequest,
  needs: DialectNeeds,
): Tell<AnswerEvent> {
  const collector = answerCollector()
  const keep = async (finish: AnswerEvent) => {
    asked.identity.kept = await save(asked, turn, collector.answer(), tenancy, needs)
    await tell(finish)
  }
  return (event) => {
    collector.push(event)
    return event.type === 'finish' ? keep(event) : tell(event)
  }
}

/** Keeps an answer before its client is told that it is complete. One that cannot be kept is an answer all the same, and says so. */
async function save(
  { request: { input, previous }, identity, added, output }: Asked,
  turn: Turn,
  answer: Answer,
  owner: Owner & { user: string },
  { store, log }: DialectNeeds,
): Promise<boolean> {
  const response = renderResponse(answer, identity, turn, output())
  const keeping = keepable({ response, answer, input, previous, added })
  if (keeping === undefined) return false
  try {
    await store.save(owner, keeping)
    return true
  } catch (err) {
    log.error({ err }, 'a response could not be stored')
    return false
  }
}
