import type { FakeJson, FakeModel, ScriptedReply } from '@tollgate/testing'
import { expect } from 'vitest'
import { openModels } from '../../src/models/registry.ts'
import { silent } from '../brokers.ts'
import { openWith } from './gateway.ts'
import { type Asked, clients, type DialectName, type Heard } from './matrix-clients.ts'
import { type WireName, wireNames, wires } from './matrix-wires.ts'

/** What a model says in a round, or how it says so on one wire. */
export type Round = ScriptedReply | ((wire: WireName, body: FakeJson) => ScriptedReply)

/**
 * One gateway before one strict stand-in of every wire, for many conversations at once: each is told from the others by
 * the number that stands in its words and in its model's name.
 */
export async function openMatrix() {
  const plays = new Map<number, Round[]>()
  let conversations = 0
  const scripts = (wire: WireName) => (body: FakeJson) => {
    const number = Number(/#(\d+)#/.exec(JSON.stringify(body))?.[1])
    const round = plays.get(number)?.shift() ?? { status: 500, body: 'the script is over' }
    return typeof round === 'function' ? round(wire, body) : round
  }
  const fakes = Object.fromEntries(
    await Promise.all(wireNames.map(async (wire) => [wire, await wires[wire].start(scripts(wire))] as const)),
  ) as Record<WireName, FakeModel>
  const models = openModels({
    providers: Object.fromEntries(
      wireNames.map((wire) => [wire, { ...wires[wire].settings(fakes[wire].url), models: [] }]),
    ),
    demo: false,
    log: silent,
  })
  const gateway = await openWith(models)
  const { brokers } = gateway

  return {
    gateway,
    fakes,
    /** A conversation of its own, in which nothing has been said yet. */
    talk(dialect: DialectName, wire: WireName, rounds: Round[]) {
      const number = conversations++
      const client = clients[dialect]
      const said = `#${number}#`
      const model = `m${number}`
      plays.set(number, rounds)
      return {
        client,
        first: client.user(`Hello ${said}`),
        ask: (streamed: boolean, more: Partial<Asked> = {}): Promise<Heard> => {
          const history = more.history ?? [client.user(`Hello ${said}`)]
          return client.ask({
            url: gateway.url,
            key: gateway.firstKey,
            model: `${wire}:${model}`,
            streamed,
            ...more,
            history,
          })
        },
        /** Bodies as the upstream got them. */
        sent: (): FakeJson[] => fakes[wire].requests.filter(({ text }) => text.includes(said)).map(({ body }) => body),
        settled: () => brokers.settled.filter((row) => row.model === model),
        left: () => plays.get(number)?.length ?? 0,
      }
    },
    refusals: () => Object.values(fakes).flatMap(({ refusals }) => refusals),
    async close() {
      expect(this.refusals()).toEqual([])
      await gateway.close()
      await models.close()
      await Promise.all(Object.values(fakes).map((fake) => fake.close()))
    },
  }
}
