import type { ClientDialect } from '../../conversation/answer.ts'
import { errorAnswer } from '../error-answer.ts'
import type { Identity } from './envelope.ts'
import { type GatewayItems, gatewayItems } from './gateway-items.ts'
import { mint } from './ids.ts'
import { openOutput } from './output.ts'
import { type ParsedRequest, parseResponses } from './parse.ts'
import { renderResponse } from './render.ts'
import { responsesStream } from './stream.ts'

/** The dialect for one request: what its answer is known by is decided once, whoever shows it. */
export function responsesDialect(baseUrl: string): ClientDialect {
  let asked: { request: ParsedRequest; identity: Identity; shows: GatewayItems } | undefined
  const ids: string[] = []
  const known = () => {
    if (asked === undefined) throw new Error('an answer is shown to a request that was never read')
    return asked
  }
  const output = () => openOutput(known().shows, ids)

  return {
    name: 'responses',
    endpoint: '/api/v1/responses',
    parse(body, bodyCharacters) {
      const request = parseResponses(body, bodyCharacters)
      const { turn, include, previous } = request
      const identity = { id: mint('response'), createdAt: Math.floor(Date.now() / 1_000), kept: false, previous }
      asked = { request, identity, shows: gatewayItems(turn, include, baseUrl) }
      return turn
    },
    writer: (turn) => responsesStream(known().identity, turn, output()),
    render: (answer, turn) => renderResponse(answer, known().identity, turn, output()),
    error: (thrown) => errorAnswer(thrown, 'responses'),
  }
}
