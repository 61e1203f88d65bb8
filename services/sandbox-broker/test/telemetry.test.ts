import { memoryBus } from '@tollgate/bus'
import { sandboxExec, sandboxOpen } from '@tollgate/contracts'
import { openLog, startTelemetry } from '@tollgate/telemetry'
import { openFakeSandbox, startOtlp } from '@tollgate/testing'
import { expect, onTestFinished, test } from 'vitest'
import { startSandboxBroker } from '../src/index.ts'

test('BR-122 spans and metrics tell how a call ended, and nothing of the code, its output or the token', async () => {
  const otlp = await startOtlp()
  const log = openLog({ service: 'test', level: 'silent' })
  const telemetry = startTelemetry({ service: 'broker', version: '0', log, otlpEndpoint: new URL('/', otlp.url).href })
  const backend = await openFakeSandbox({ token: 'token-5b1c' })
  const bus = memoryBus({ log })
  const settings = { provider: 'protocol', url: backend.url, token: 'token-5b1c', execTimeoutSeconds: 60 }
  const broker = await startSandboxBroker({ bus, log, settings })
  onTestFinished(async () => {
    await bus.drain(Date.now() + 1_000)
    await broker.close(Date.now())
    await backend.close()
    await otlp.stop()
  })
  const tenancy = { organization: 'o', workspace: 'w', user: 'u', key: 'k', request: 'r', attempt: 0 }
  const soon = { deadline: Date.now() + 10_000 }
  const { session } = await bus.call(sandboxOpen, { tenancy }, soon)
  await bus.call(sandboxExec, { tenancy, session, code: 'print("marker-91af")' }, soon)
  await bus.call(sandboxExec, { tenancy, session: 'unknown', code: 'print("marker-91af")' }, soon)

  // the fake refuses a request that carries a trace, so all three were answered without one
  expect(backend.requests.map(({ operation }) => operation)).toEqual(['create', 'exec', 'exec'])
  const metrics = await telemetry.metricsText()
  expect(metrics).toMatch(/sandbox_call_seconds_count\{[^}]*operation="exec"[^}]*outcome="ok"[^}]*\} 1/)
  expect(metrics).toMatch(/sandbox_call_seconds_count\{[^}]*operation="exec"[^}]*outcome="lost"[^}]*\} 1/)
  await telemetry.shutdown()
  await expect.poll(() => otlp.spans.filter(({ name }) => name.startsWith('sandbox ')).length).toBe(3)
  const ours = otlp.spans.filter(({ scope }) => scope === '@tollgate/sandbox-broker')
  expect(ours.map(({ name, attributes }) => [name, attributes['sandbox.outcome']])).toEqual([
    ['sandbox create', 'ok'],
    ['sandbox exec', 'ok'],
    ['sandbox exec', 'lost'],
  ])
  for (const text of [metrics, ...otlp.spans.map((span) => span.text)]) {
    expect(text).not.toContain('marker-91af')
    expect(text).not.toContain('token-5b1c')
    expect(text).not.toContain(session)
  }
})
