import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The file that takes longest by far begins first: the last one to run is then a short one. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLongest = ({ moduleId }: TestSpecification): boolean => moduleId.includes('/test/system/survival')
    return (await super.sort(files)).toSorted((a, b) => Number(isLongest(b)) - Number(isLongest(a)))
  }
}

/** Services whose tests share their workers' modules: loading them anew for every file took a third of the whole run. */
const sharing = ['gateway', 'billing', 'search-broker', 'sandbox-broker'].map((name) => `services/${name}/test`)
const testsIn = (folder: string): string[] =>
  readdirSync(join(import.meta.dirname, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join(folder, name))
/** Telemetry is set up once a process: a file that does so, to read what was measured, has a process of its own. */
const setsUpTelemetry = (file: string): boolean =>
  /\b(startTelemetry|setGlobal\w+)\b/.test(readFileSync(join(import.meta.dirname, file), 'utf8'))
const together = sharing.flatMap(testsIn).filter((file) => !setsUpTelemetry(file))

const common = { pool: 'forks', testTimeout: 60_000, hookTimeout: 180_000, teardownTimeout: 60_000 } as const

export default defineConfig({
  test: {
    globalSetup: ['packages/testing/src/global-setup.ts'],
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './packages/testing/src/reporter.ts'],
    projects: [
      {
        test: {
          ...common,
          name: 'apart',
          include: ['{test,packages/*/test,services/*/test}/**/*.test.ts'],
          exclude: ['**/node_modules/**', 'test/bench/**', ...together],
        },
      },
      { test: { ...common, name: 'together', include: together, isolate: false } },
    ],
  },
})
