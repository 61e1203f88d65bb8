import type { Reporter, TestModule, TestSuite, Vitest } from 'vitest/node'

/**
 * Says in the very last line how the run went: `N passed, N failed`, then `, N skipped` if any were. A file that did not
 * load, a hook that threw and an error that nobody caught each count as one failed.
 */
export default class ClosingLine implements Reporter {
  private counts = { passed: 0, failed: 0, skipped: 0 }

  onInit(vitest: Vitest): void {
    // at exit, since vitest may still say something after the reporters were told of the end
    if (!vitest.config.watch) process.once('exit', (code) => process.stdout.write(`\n${this.line(code)}\n`))
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    this.counts = { passed: 0, failed: unhandled.length, skipped: 0 }
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        // a test that is still pending when the run ends was cut off, and that is no pass
        this.counts[state === 'pending' ? 'failed' : state] += 1
      }
      this.counts.failed += brokenSuites(module)
    }
  }

  private line(exitCode: number): string {
    const { passed, skipped } = this.counts
    // a run that ends badly has failed, though no test did: the servers did not start, say, or no test was found
    const failed = exitCode === 0 ? this.counts.failed : Math.max(1, this.counts.failed)
    return `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`
  }
}

/** Files and suites with errors of their own: those of their tests are counted by test. */
function brokenSuites(module: TestModule): number {
  const suites: (TestModule | TestSuite)[] = [module, ...module.children.allSuites()]
  return suites.filter((suite) => suite.errors().length > 0).length
}
