import { type Tell, tellAll } from '../src/conversation/tell.ts'

/** What tells the events of an answer. */
export type Telling<Event> = (tell: Tell<Event>) => Promise<void>

/** Everything that is told, once all of it was. */
export async function toldBy<Event>(read: Telling<Event>, events: Event[] = []): Promise<Event[]> {
  await read((event) => {
    events.push(event)
    return undefined
  })
  return events
}

/** An answer that says these. */
export const telling =
  <Event>(events: Iterable<Event>): Telling<Event> =>
  async (tell) =>
    tellAll(events, tell)
