import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that get a process of their own, by what they need it for. Those that take longest stand first. */
const alone = [
  // whole systems: they start many processes, and wait for them most of the time
  'test/system/survival.test.ts',
  'test/system/system.test.ts',
  'test/system/sandbox-survival.test.ts',
  'test/system/shutdown.test.ts',
  'test/system/bare.test.ts',
  'test/system/npm-start.test.ts',
  // count the processes below this one, or its memory
  'services/sandbox/test/abuse-processes.test.ts',
  'services/sandbox/test/abuse-time.test.ts',
  'services/sandbox/test/line.test.ts',
  'services/sandbox/test/lifecycle.test.ts',
  'services/sandbox/test/abuse-escape.test.ts',
  'services/sandbox/test/survival.test.ts',
  'services/sandbox/test/abuse-disk.test.ts',
  'services/sandbox/test/abuse-kernel.test.ts',
  'services/sandbox/test/abuse-races.test.ts',
  'services/sandbox/test/files.test.ts',
  'services/sandbox/test/folders.test.ts',
  'services/sandbox/test/stream.test.ts',
  'services/fetch-worker/test/retrieval.test.ts',
  'packages/http/test/limit.test.ts',
  // fills more than a GiB of heap, which a process keeps
  'packages/bus/test/nats-overload.test.ts',
  // move bodies of many MiB, which takes many times as long in a process whose heap has grown
  'packages/bus/test/calls.test.ts',
  'services/gateway/test/conversation/hostile-models.test.ts',
  'services/search-broker/test/faults.test.ts',
  'services/search-broker/test/fetch.test.ts',
  // set the tracer of the process, of which every module keeps the first that it saw
  'packages/bus/test/tracing.test.ts',
  'packages/db/test/spans.test.ts',
  'packages/telemetry/test/traces.test.ts',
  'services/fetch-worker/test/worker.test.ts',
  'services/gateway/test/conversation/spans.test.ts',
  'services/gateway/test/models/registry.test.ts',
  'services/gateway/test/routes/observe.test.ts',
  'services/gateway/test/routing/observed.test.ts',
  'services/sandbox-broker/test/telemetry.test.ts',
  'services/sandbox/test/telemetry.test.ts',
  'services/search-broker/test/secrets.test.ts',
]

const gone = alone.filter((file) => !existsSync(join(import.meta.dirname, file)))
if (gone.length > 0) throw new Error(`vitest.config.ts names files that are not there: ${gone.join(', ')}`)

/** The files that are alone come first, as they stand above: the last ones to run are then short. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = alone.findIndex((file) => moduleId.endsWith(`/${file}`))
      return at === -1 ? alone.length : at
    }
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b))
  }
}

const common = { testTimeout: 60_000, hookTimeout: 180_000 }

export default defineConfig({
  test: {
    globalSetup: ['packages/testing/src/global-setup.ts'],
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    teardownTimeout: 60_000,
    reporters: ['default', './packages/testing/src/reporter.ts'],
    projects: [
      { test: { ...common, name: 'alone', include: alone } },
      {
        // one process runs file after file, and loads the modules once for all of them
        test: {
          ...common,
          name: 'together',
          isolate: false,
          include: ['{test,packages/*/test,services/*/test}/**/*.test.ts'],
          exclude: ['**/node_modules/**', 'test/bench/**', ...alone],
        },
      },
    ],
  },
})
