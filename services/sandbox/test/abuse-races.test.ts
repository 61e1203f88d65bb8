import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Backend, openBackend, printed, type SessionClient } from './harness.ts'
import { hasNamespaces } from './here.ts'

const ROUNDS = 300

describe.skipIf(!(await hasNamespaces()))('a workspace that changes under the hand', () => {
  let backend: Backend
  let own: SessionClient
  const secret = `secret-${randomUUID()}`
  beforeAll(async () => {
    backend = await openBackend()
    own = await backend.open()
    // outside of the workspace, and readable and writable for the session itself: only the server must not go there
    await own.shell(
      `mkdir /tmp/outside; echo ${secret} > /tmp/outside/file; echo inside > real.txt; mkdir -p real; echo inside > real/file`,
    )
  })
  afterAll(() => backend.close())

  /** Swaps a name between something inside and a link out, as fast as a program can, until a file says to stop. */
  const swapper = (name: string, inside: string, outside: string) => `
import os, threading
def swap():
    while not os.path.exists("/tmp/stop"):
        for target in ("${inside}", "${outside}"):
            os.symlink(target, "swap.new")
            os.rename("swap.new", "${name}")
threading.Thread(target=swap, daemon=True).start()`
  const stop = () => own.shell('touch /tmp/stop; sleep 0.3; rm /tmp/stop')

  test('G4 BR-120 no read ever goes through a link that leads out', { timeout: 60_000 }, async () => {
    await own.python(swapper('link', 'real.txt', '/tmp/outside/file'))
    const seen = { inside: 0, refused: 0, other: 0 }
    for (let round = 0; round < ROUNDS; round += 1) {
      const { status, bytes } = await own.get('link')
      expect(bytes.toString()).not.toContain(secret)
      if (status === 200) seen.inside += 1
      else if (status === 403) seen.refused += 1
      else seen.other += 1
    }
    await stop()
    // both targets were met, so the race was run
    expect(seen.inside).toBeGreaterThan(0)
    expect(seen.refused).toBeGreaterThan(0)
  })

  test('G5 BR-120 no listing, write or edit goes through a folder that turns into a link', {
    timeout: 60_000,
  }, async () => {
    await own.python(swapper('folder', 'real', '/tmp/outside'))
    const before = printed(await own.shell('ls -lA --time-style=full-iso /tmp/outside; cat /tmp/outside/file'))
    for (let round = 0; round < ROUNDS / 3; round += 1) {
      const { status, body } = await own.list('folder')
      expect([200, 403, 404]).toContain(status)
      if (status === 200) expect(body.files.map(({ path }) => path)).not.toContain('folder/outside')
      expect([201, 403, 404, 422, 400]).toContain((await own.put(`folder/put-${round}.txt`, 'x')).status)
      await own.edit({ command: 'create', path: `folder/made-${round}.txt`, file_text: 'x' })
      await own.edit({ command: 'str_replace', path: 'folder/file', old_str: secret, new_str: 'stolen' })
    }
    await stop()
    expect(printed(await own.shell('ls -lA --time-style=full-iso /tmp/outside; cat /tmp/outside/file'))).toBe(before)
  })
})
