import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'

const run = promisify(execFile)

export type PythonProbe = { ok: true; path: string; version: string } | { ok: false; reason: string }

const PROBE = 'import json, sys; print(json.dumps([sys.executable, sys.version_info[0], sys.version_info[1]]))'
const answer = z.tuple([z.string().min(1), z.int(), z.int()])
const PROBE_MS = 10_000

/**
 * Finds a Python that can run sessions: the one that is asked for, or the first of the PATH and the usual places.
 * Whatever stands for it there (a shim, a link) is asked for its real path.
 */
export async function probePython({ python, path = '' }: { python?: string; path?: string }): Promise<PythonProbe> {
  if (process.platform !== 'linux')
    return { ok: false, reason: 'the bundled sandbox needs Linux; set sandbox_url to a sandbox that runs elsewhere' }
  const folders = [...path.split(delimiter).filter(Boolean), '/usr/local/bin', '/usr/bin']
  const candidates = python ? [python] : [...new Set(folders.map((folder) => join(folder, 'python3')))]
  let reason = 'Python 3.9 or later is needed to run code, and there is no python3'
  for (const candidate of candidates) {
    if (candidate.includes('/') && !(await executable(candidate))) {
      if (python) reason = `${python} cannot be run`
      continue
    }
    const probe = await ask(candidate)
    if (probe.ok) return probe
    reason = probe.reason
  }
  return { ok: false, reason }
}

async function ask(program: string): Promise<PythonProbe> {
  try {
    const { stdout } = await run(program, ['-I', '-c', PROBE], { timeout: PROBE_MS, env: { PATH: '/usr/bin:/bin' } })
    const [path, major, minor] = answer.parse(JSON.parse(stdout))
    if (major !== 3 || minor < 9)
      return { ok: false, reason: `${program} is Python ${major}.${minor}; 3.9 or later is needed` }
    return { ok: true, path, version: `${major}.${minor}` }
  } catch {
    return { ok: false, reason: `${program} does not answer as a Python 3 would` }
  }
}

const executable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
