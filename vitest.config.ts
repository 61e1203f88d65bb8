import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The file that takes longest by far begins first: the last one to run is then a short one. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLongest = ({ moduleId }: TestSpecification): boolean => moduleId.includes('/test/system/survival')
    return (await super.sort(files)).toSorted((a, b) => Number(isLongest(b)) - Number(isLongest(a)))
  }
}

export default defineConfig({
  test: {
    globalSetup: ['packages/testing/src/global-setup.ts'],
    include: ['{test,packages/*/test,services/*/test}/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/bench/**'],
    pool: 'forks',
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
    reporters: ['default', './packages/testing/src/reporter.ts'],
  },
})
