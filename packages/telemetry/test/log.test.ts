import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const root = new URL('../../..', import.meta.url)

test('what is logged before a process exits is all there, in its order', async () => {
  const program = ['--import', './scripts/ts.mjs', 'packages/telemetry/test/programs/last-words.ts']
  const runs = await Promise.all(Array.from({ length: 6 }, () => run(process.execPath, program, { cwd: root })))
  for (const { stdout } of runs) {
    const lines = stdout.trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).n)).toEqual(Array.from({ length: 50 }, (_, n) => n))
  }
})
