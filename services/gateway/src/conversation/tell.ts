/**
 * Takes the events of one answer, one after the other. A promise: whoever is told last reads slower, and the next event
 * waits until it resolves. Throwing ends the answer, and the connection that it comes from.
 *
 * Events are pushed and not pulled: of generators laid over each other every level costs several promises an event, and
 * what a model says takes this way a token at a time.
 */
export type Tell<Event> = (event: Event) => Promise<void> | undefined

/** Tells all of them, in their order. */
export function tellAll<Event>(events: Iterable<Event>, tell: Tell<Event>): Promise<void> | undefined {
  const rest = events[Symbol.iterator]()
  for (let step = rest.next(); !step.done; step = rest.next()) {
    const full = tell(step.value)
    if (full) return full.then(() => tellAll({ [Symbol.iterator]: () => rest }, tell))
  }
  return undefined
}
