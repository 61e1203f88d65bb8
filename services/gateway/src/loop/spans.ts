import { type Context, context } from '@opentelemetry/api'

/** Runs each step of an iteration in `at`: a generator's body otherwise runs in the context of whoever pulls it. */
export function within<T, R>(at: Context, steps: AsyncIterable<T, R>): AsyncIterable<T, R> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = steps[Symbol.asyncIterator]()
      return {
        next: () => context.with(at, () => iterator.next()),
        return: async (value) => (await iterator.return?.(value)) ?? { done: true, value: (await value) as R },
      }
    },
  }
}
