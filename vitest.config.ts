import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    globalSetup: ['packages/testing/src/global-setup.ts'],
    include: ['{test,packages/*/test,services/*/test}/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/bench/**'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
    reporters: ['default', './packages/testing/src/reporter.ts'],
  },
})
