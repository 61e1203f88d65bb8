import { openLog, startTelemetry } from '@tollgate/telemetry'
import { expect, onTestFinished, test } from 'vitest'
import { defaultSandboxSettings, startSandbox } from '../src/index.ts'
import { clientOf, sessionClient } from './harness.ts'

test('metrics count sessions and calls, and the log names them without what they ran', async () => {
  const events: string[] = []
  const write = (...words: unknown[]) => void events.push(JSON.stringify(words))
  const log = { info: write, warn: write, error: write, debug: write, child: () => log } as never
  const telemetry = startTelemetry({
    service: 'sandbox',
    version: '0',
    log: openLog({ service: 't', level: 'silent' }),
  })
  const sandbox = await startSandbox({
    log,
    settings: { ...defaultSandboxSettings, token: 'token-77de', warmSessions: 1 },
  })
  onTestFinished(async () => {
    await sandbox.close(Date.now())
    await telemetry.shutdown()
  })
  const client = clientOf(sandbox.url, 'token-77de')
  const { body } = await client.send<{ session_id: string }>('POST', '/sessions')
  const session = sessionClient(client, sandbox.url, body.session_id)
  await session.python('print("marker-3c0d")')
  await session.python('raise ValueError("marker-3c0d")')
  await session.python('while True: pass', 1)
  await expect.poll(() => sandbox.health().sessions).toEqual({ leased: 1, ready: 1, most: 64 })

  const metrics = await telemetry.metricsText()
  expect(metrics).toMatch(/sandbox_sessions\{[^}]*state="leased"[^}]*\} 1/)
  expect(metrics).toMatch(/sandbox_sessions\{[^}]*state="ready"[^}]*\} 1/)
  for (const outcome of ['ok', 'failed', 'time'])
    expect(metrics).toMatch(new RegExp(`sandbox_exec_seconds_count\\{[^}]*outcome="${outcome}"[^}]*\\} 1`))
  expect(events.filter((event) => event.includes('call ended'))).toHaveLength(3)
  expect(events.filter((event) => event.includes(body.session_id)).length).toBeGreaterThanOrEqual(4)
  for (const secret of ['marker-3c0d', 'token-77de']) expect([...events, metrics].join('\n')).not.toContain(secret)
})
