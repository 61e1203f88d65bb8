/*
 * Steps of an iteration passed on by hand. Generators laid over each other do the same, at the price of several promises
 * for every level and step; what a model says takes this way a token at a time.
 */

/** A source that is opened with the first step. */
export function lazily<T>(open: () => Promise<AsyncIterable<T>>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      let source: AsyncIterator<T> | undefined
      const begin = async (): Promise<IteratorResult<T>> => {
        source = (await open())[Symbol.asyncIterator]()
        return source.next()
      }
      return {
        next: () => (source ? source.next() : begin()),
        return: async () => (await source?.return?.()) ?? { value: undefined, done: true },
      }
    },
  }
}

export interface Ear<T> {
  step(value: T): void
  /** The source has nothing more. */
  ended(): void
  /** What is thrown in the place of what the source threw. */
  failed(thrown: unknown): unknown
  /** Whoever iterated wants no more of it. */
  left(): void
}

/** The same steps, with an ear to each. */
export function heard<T>(steps: AsyncIterable<T>, ear: Ear<T>): AsyncIterable<T> {
  const hear = (step: IteratorResult<T>): IteratorResult<T> => {
    if (step.done) ear.ended()
    else ear.step(step.value)
    return step
  }
  const fail = (thrown: unknown): never => {
    throw ear.failed(thrown)
  }
  return {
    [Symbol.asyncIterator]() {
      const source = steps[Symbol.asyncIterator]()
      return {
        next: () => source.next().then(hear, fail),
        async return() {
          try {
            return (await source.return?.()) ?? { value: undefined, done: true }
          } finally {
            ear.left()
          }
        },
      }
    },
  }
}
