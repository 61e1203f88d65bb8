import { openLog } from '@tollgate/telemetry'
import { type FakeE2bOptions, openFakeE2b } from '@tollgate/testing'
import { onTestFinished } from 'vitest'
import { openE2b } from '../src/e2b/provider.ts'
import type { CreateOptions, ExecCall, Provider } from '../src/provider.ts'

export const KEY = 'e2b_test_key'
export const limits = () => ({ signal: new AbortController().signal, deadline: Date.now() + 60_000 })

/** A provider before a stand-in, and all that it logs. */
export async function openHosted(options: FakeE2bOptions = {}) {
  const vendor = await openFakeE2b(options)
  const logged: string[] = []
  const log = openLog({ service: 'test', level: 'debug', write: (line) => void logged.push(line) })
  const key = { current: KEY as string | undefined }
  const settings = { domain: 'e2b.app', template: 'code-interpreter-v1', internet: false }
  onTestFinished(() => vendor.close())
  const another = async () => {
    const provider = await openE2b({
      settings: { ...settings, apiUrl: vendor.url, sandboxUrl: vendor.url },
      apiKey: () => key.current,
      log,
    })
    onTestFinished(() => provider.close())
    return provider
  }
  const provider = await another()
  const lease = async (wanted: CreateOptions = {}) => {
    const opened = await provider.create(wanted, limits())
    if (opened.status !== 'ok') throw new Error(`no session: ${opened.reason}`)
    return opened.session
  }
  return { vendor, provider, another, lease, logged, key }
}

export const python = (code: string, timeoutSeconds = 20): ExecCall => ({ kind: 'python', code, timeoutSeconds })
export const shell = (code: string, timeoutSeconds = 20): ExecCall => ({ kind: 'shell', code, timeoutSeconds })

export const run = (provider: Provider, session: string, call: ExecCall) => provider.exec(session, call, limits())
