import { openLog, startTelemetry } from '@tollgate/telemetry'
import { expect, onTestFinished, test } from 'vitest'
import { echo, echoBy, gate, openSystem, within } from './open-buses.ts'

test('a worker tells how long the calls it takes had waited, and how many still do', async () => {
  const telemetry = startTelemetry({ service: 't', version: '1', log: openLog({ service: 't', level: 'silent' }) })
  onTestFinished(() => telemetry.shutdown())
  const contract = echoBy('queue')
  const join = openSystem('nats')
  const [client, worker] = [await join('client'), await join('worker')]
  const open = gate()
  let started = 0
  const handle = async (input: { text: string; times: number }) => {
    started++
    await open.promise
    return echo(input)
  }
  await worker.serve(contract, handle, { slots: 1 })
  const calls = [1, 2, 3, 4].map((at) => client.call(contract, { text: `${at}` }, within(20_000)))
  const read = async (name: string) => {
    const text = await telemetry.metricsText()
    return Number(new RegExp(`^${name}\\{[^}]*subject="${contract.subject}"[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1])
  }
  await expect.poll(() => started).toBe(1)
  open.resolve()
  await Promise.all(calls)
  await expect.poll(() => read('bus_queue_waiting')).toBe(0)
  expect(await read('bus_queue_wait_seconds_count')).toBe(4)
  expect(await read('bus_queue_wait_seconds_sum')).toBeLessThan(20)
})
