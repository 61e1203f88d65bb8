import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { z } from 'zod'

const report = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      assertionResults: z.array(
        z.object({ title: z.string(), ancestorTitles: z.array(z.string()), status: z.string() }),
      ),
    }),
  ),
})

export interface TestResult {
  /** Its own, after those of the groups it is in. */
  titles: string[]
  passed: boolean
  file: string
}

const root = join(import.meta.dirname, '../..')

/** Runs the whole suite and answers how every test ended; nothing is kept between runs, so nothing can be stale. */
export function runSuite(filters: string[]): TestResult[] {
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'))
  try {
    const output = join(folder, 'results.json')
    spawnSync(
      process.execPath,
      [
        join(root, 'node_modules/vitest/vitest.mjs'),
        'run',
        '--reporter=dot',
        '--reporter=json',
        `--outputFile=${output}`,
        ...filters,
      ],
      { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] },
    )
    const { testResults } = report.parse(JSON.parse(readFileSync(output, 'utf8')))
    return testResults.flatMap(({ name, status: ofFile, assertionResults }): TestResult[] => {
      const file = relative(root, name)
      // a file that cannot be read has no tests to tell of it
      if (assertionResults.length === 0 && ofFile === 'failed') return [{ titles: [], passed: false, file }]
      return assertionResults.flatMap(({ title, ancestorTitles, status }) =>
        // one that did not run proves nothing, and refutes nothing
        status === 'passed' || status === 'failed'
          ? [{ titles: [...ancestorTitles, title], passed: status === 'passed', file }]
          : [],
      )
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
