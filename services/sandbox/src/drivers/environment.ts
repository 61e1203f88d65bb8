import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { IsolationLevel, SandboxSettings } from '../settings.ts'

/** Time to end in good order, once interrupted, before everything is ended. */
const GRACE_SECONDS = 0.7

/** What the zygote is told; its names are Python's. */
export interface ZygoteConfig {
  level: IsolationLevel
  first_user: number
  preload: string[]
  grace_seconds: number
  shell: string
  environment: Record<string, string>
  limits: Record<string, number> & { output_bytes: number }
  /** For tests of what older kernels have. */
  landlock_at_most?: number
}

export function zygoteConfig(level: IsolationLevel, python: string, settings: SandboxSettings): ZygoteConfig {
  const { limits } = settings
  return {
    level,
    first_user: settings.firstUserId,
    preload: settings.preload,
    grace_seconds: GRACE_SECONDS,
    shell: existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh',
    environment: environment(python),
    limits: {
      memory_bytes: limits.memoryBytes,
      processes: limits.processes,
      open_files: limits.openFiles,
      file_bytes: limits.fileBytes,
      workspace_bytes: limits.workspaceBytes,
      temporary_bytes: limits.temporaryBytes,
      shared_bytes: limits.sharedBytes,
      inodes: limits.inodes,
      output_bytes: limits.outputBytes,
    },
  }
}

/** What programs find in their environment, beside `HOME` and `TMPDIR`: nothing of the server's own. */
const environment = (python: string): Record<string, string> => ({
  PATH: [...new Set([dirname(python), '/usr/local/bin', '/usr/bin', '/bin'])].join(':'),
  USER: 'sandbox',
  LANG: 'C.UTF-8',
  PYTHONUNBUFFERED: '1',
  PYTHONDONTWRITEBYTECODE: '1',
  MPLBACKEND: 'Agg',
  // a session has few processes, and threads count as such
  OPENBLAS_NUM_THREADS: '1',
  OMP_NUM_THREADS: '1',
  MKL_NUM_THREADS: '1',
  // one arena for each thread would be most of what the address space allows
  MALLOC_ARENA_MAX: '2',
})
