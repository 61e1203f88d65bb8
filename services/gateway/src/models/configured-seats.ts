import { Fault, type SeatSettings, seatMistake } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { Dialect } from '../conversation/turn.ts'
import { dialectOfWire } from './provider.ts'
import type { Instance, ResolvedModel } from './registry.ts'
import { type SeatTools, seatTools } from './seats.ts'

/** A model by a name of the deployment's own. */
export interface ConfiguredSeat {
  name: string
  /** `provider:model` */
  selector: string
  settings: SeatSettings
  tools: SeatTools | undefined
}

export interface ConfiguredSeats {
  /** Whether there is a seat of this name, in service or not. */
  has(name: string): boolean
  /** Undefined for a seat that is out of service. */
  find(name: string): ConfiguredSeat | undefined
  list(): ConfiguredSeat[]
  fault(name: string, settings: SeatSettings): string | undefined
  set(settings: Readonly<Record<string, SeatSettings>>): void
  /** Throws `unavailable` for a seat that is out of service. */
  resolve(name: string, dialect: Dialect | undefined): ResolvedModel
}

/** The seats of the deployment. One that cannot work is out of service by itself: all others serve (PE-42). */
export function openSeats(instances: ReadonlyMap<string, Instance>, log: Log): ConfiguredSeats {
  let seats = new Map<string, ConfiguredSeat | string>()
  const find = (name: string): ConfiguredSeat | undefined => {
    const seat = seats.get(name)
    return typeof seat === 'string' ? undefined : seat
  }

  return {
    find,
    has: (name) => seats.has(name),
    list: () => Array.from(seats.values()).filter((seat) => typeof seat !== 'string'),
    fault: (name, settings) => {
      const seat = openSeat(name, settings, instances)
      return typeof seat === 'string' ? seat : undefined
    },
    set(settings) {
      const before = seats
      seats = new Map(Object.entries(settings).map(([name, one]) => [name, openSeat(name, one, instances)]))
      for (const [name, fault] of seats)
        if (typeof fault === 'string' && before.get(name) !== fault)
          log.error(
            { seat: name, err: new Error(fault) },
            'a model of the configuration cannot be used; the others serve',
          )
    },
    resolve: (name, dialect) => resolveSeat(name, find(name), instances, dialect),
  }
}

/** The seat, or why it cannot be used. */
function openSeat(
  name: string,
  settings: SeatSettings,
  instances: ReadonlyMap<string, Instance>,
): ConfiguredSeat | string {
  const instance = instances.get(settings.provider)
  if (!instance) return `models.${name}: no provider '${settings.provider}' is configured`
  const mistake = seatMistake(name, settings)
  if (mistake !== undefined) return mistake
  const tools = seatTools(name, settings)
  if (tools && !instance.providers.some(({ wire }) => wire === 'openai-chat'))
    return `models.${name}: tools that a backend runs need a provider that speaks Chat Completions`
  return { name, selector: `${settings.provider}:${settings.model}`, settings, tools }
}

/** What its backend runs is declared and answered in the words of Chat Completions, whatever the client speaks. */
function resolveSeat(
  name: string,
  seat: ConfiguredSeat | undefined,
  instances: ReadonlyMap<string, Instance>,
  dialect: Dialect | undefined,
): ResolvedModel {
  const instance = seat && instances.get(seat.settings.provider)
  if (!instance) throw new Fault('unavailable', `the model '${name}' is out of service on this gateway`)
  const spoken = seat.tools ? 'chat' : dialect
  return {
    provider: instance.providers.find(({ wire }) => dialectOfWire[wire] === spoken) ?? instance.providers[0],
    type: instance.type,
    model: seat.settings.model,
    ...(seat.tools && { seat: seat.tools }),
  }
}
