import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, inject, onTestFinished } from 'vitest'
import type { Timing } from '../src/index.ts'

interface WorkerSettings {
  prefix: string
  delivery: 'direct' | 'queue'
  idempotent?: boolean
  slots?: number
  takesMs?: number
  servers?: string
  timing?: Partial<Timing>
}

export interface WorkerProcess {
  /** The calls it started, each with the number of the attempt. */
  started(): string[]
  signal(signal: NodeJS.Signals): void
}

const root = join(import.meta.dirname, '../../..')

/** Starts a worker in a process of its own, and resolves once it serves. */
export async function startWorker(settings: WorkerSettings): Promise<WorkerProcess> {
  const all = {
    servers: inject('natsUrl'),
    idempotent: true,
    slots: 4,
    takesMs: 0,
    timing: {},
    ...settings,
  }
  const program = join(import.meta.dirname, 'worker-process.ts')
  const child = spawn(process.execPath, ['--import', join(root, 'scripts/ts.mjs'), program, JSON.stringify(all)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  await expect.poll(() => said, { timeout: 45_000 }).toContain('ready\n')
  return {
    started: () => [...said.matchAll(/^started (.*)$/gm)].map(([, call]) => call ?? ''),
    signal: (signal) => void child.kill(signal),
  }
}
