import type { Reporter, TestModule, TestSuite, Vitest } from 'vitest/node'

/**
 * Says in the very last line how the run went: `N passed, N failed`, then `, N skipped` if any were. A file that did not
 * load, a hook that threw and an error that nobody caught each count as one failed.
 */
export default class ClosingLine implements Reporter {
  private line: string | undefined

  onInit(vitest: Vitest): void {
    // at exit, since vitest may still say something after the reporters were told of the end
    if (!vitest.config.watch) process.once('exit', (code) => this.print(code))
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const counts = { passed: 0, failed: unhandled.length, skipped: 0 }
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        // a test that is still pending when the run ends was cut off, and that is no pass
        counts[state === 'pending' ? 'failed' : state] += 1
      }
      counts.failed += brokenSuites(module)
    }
    this.line = `${counts.passed} passed, ${counts.failed} failed${counts.skipped ? `, ${counts.skipped} skipped` : ''}`
  }

  private print(code: number): void {
    const neverRan = code === 0 ? '0 passed, 0 failed' : '0 passed, 1 failed'
    process.stdout.write(`\n${this.line ?? neverRan}\n`)
  }
}

/** Files and suites with errors of their own: those of their tests are counted by test. */
function brokenSuites(module: TestModule): number {
  const suites: (TestModule | TestSuite)[] = [module, ...module.children.allSuites()]
  return suites.filter((suite) => suite.errors().length > 0).length
}
