import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Bus, memoryBus } from '@tollgate/bus'
import { sandboxExec, sandboxOpen } from '@tollgate/contracts'
import { localFiles } from '@tollgate/files'
import { openLog } from '@tollgate/telemetry'
import { type FakeSandboxOptions, openFakeSandbox } from '@tollgate/testing'
import { onTestFinished } from 'vitest'
import { type SandboxBrokerSettings, startSandboxBroker } from '../src/index.ts'

export const log = openLog({ service: 'test', level: 'silent' })
export const tenancy = { organization: 'o', workspace: 'w', user: 'u', key: 'k', request: 'r', attempt: 0 }
export const soon = () => ({ deadline: Date.now() + 30_000 })

export interface StartOptions extends FakeSandboxOptions {
  settings?: Partial<SandboxBrokerSettings>
  /** Whether there is a store for files. */
  store?: boolean
}

export async function start({ settings, store = false, ...fake }: StartOptions = {}) {
  const backend = await openFakeSandbox(fake)
  const bus = memoryBus({ log })
  const folder = await mkdtemp(join(tmpdir(), 'broker-'))
  const files = await localFiles(folder)
  const broker = await startSandboxBroker({
    bus,
    log,
    ...(store ? { files } : {}),
    settings: { provider: 'protocol', url: backend.url, execTimeoutSeconds: 60, ...settings },
  })
  onTestFinished(async () => {
    await bus.drain(Date.now() + 1_000)
    await broker.close(Date.now())
    await backend.close()
    await rm(folder, { recursive: true })
  })
  return { backend, bus, files }
}

/** A file's content, as a store takes it. */
export async function* content(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

export const lease = async (bus: Bus) => (await bus.call(sandboxOpen, { tenancy }, soon())).session
export const run = async (bus: Bus, session: string, code: string, timeoutSeconds?: number) =>
  bus.call(sandboxExec, { tenancy, session, code, ...(timeoutSeconds ? { timeoutSeconds } : {}) }, soon())
