import { counter, histogram, observe, openLog, startTelemetry, type Telemetry, upTo } from '@tollgate/telemetry'
import { afterEach, expect, test } from 'vitest'

const log = openLog({ service: 'test', level: 'silent' })
const calls = counter('test_calls_total', 'Calls', { outcome: ['ok', 'error'], tool: upTo(2) })
const seconds = histogram('test_seconds', 'Time', { outcome: ['ok'] }, [0.1, 1])

let telemetry: Telemetry | undefined
const start = () => {
  telemetry = startTelemetry({ service: 'test', version: '1.2.3', log })
  return telemetry
}
afterEach(async () => {
  await telemetry?.shutdown()
  telemetry = undefined
})

test('an instrument made before telemetry starts counts once it has', async () => {
  calls.add(1, { outcome: 'ok', tool: 'early' })
  const { metricsText } = start()
  calls.add(2, { outcome: 'ok', tool: 'search' })
  const text = await metricsText()
  expect(text).toContain('test_calls_total{outcome="ok",tool="search"} 2')
  expect(text).not.toContain('early')
})

test('a value outside a closed label counts as other', async () => {
  const { metricsText } = start()
  calls.add(1, { outcome: 'gw-secret', tool: 'search' })
  const text = await metricsText()
  expect(text).toContain('outcome="other"')
  expect(text).not.toContain('gw-secret')
})

test('an open label keeps its first values and calls the rest other', async () => {
  const { metricsText } = start()
  const open = counter('test_open_total', 'Open', { tool: upTo(2) })
  for (const tool of ['a', 'b', 'c', 'd', 'a']) open.add(1, { tool })
  const text = await metricsText()
  expect(text).toContain('test_open_total{tool="a"} 2')
  expect(text).toContain('test_open_total{tool="b"} 1')
  expect(text).toContain('test_open_total{tool="other"} 2')
})

test('a histogram has the buckets it was given', async () => {
  const { metricsText } = start()
  seconds.record(0.5, { outcome: 'ok' })
  const text = await metricsText()
  expect(text).toContain('test_seconds_bucket{outcome="ok",le="0.1"} 0')
  expect(text).toContain('test_seconds_bucket{outcome="ok",le="1"} 1')
})

test('what is observed is read at each scrape until its owner ends it', async () => {
  const { metricsText } = start()
  let slots = 3
  const end = observe('test_slots', 'Slots', { state: ['busy'] }, () => [{ value: slots, values: { state: 'busy' } }])
  expect(await metricsText()).toContain('test_slots{state="busy"} 3')
  slots = 7
  expect(await metricsText()).toContain('test_slots{state="busy"} 7')
  end()
  slots = 9
  expect(await metricsText()).not.toContain('test_slots{state="busy"} 9')
})

test('a process tells its memory, processor time and event loop lag', async () => {
  const text = await start().metricsText()
  const value = (line: RegExp) => Number(line.exec(text)?.[1])
  expect(value(/^process_resident_memory_bytes (\S+)$/m)).toBeGreaterThan(1e7)
  expect(value(/^process_cpu_seconds_total\{mode="user"\} (\S+)$/m)).toBeGreaterThan(0)
  expect(value(/^nodejs_eventloop_lag_seconds\{quantile="0.99"\} (\S+)$/m)).toBeGreaterThanOrEqual(0)
  expect(text).not.toContain('NaN')
})

test('every metric has its help and type once', async () => {
  const { metricsText } = start()
  calls.add(1, { outcome: 'ok', tool: 'search' })
  const text = await metricsText()
  expect(text.match(/^# HELP test_calls_total Calls$/gm)).toHaveLength(1)
  expect(text.match(/^# TYPE test_calls_total counter$/gm)).toHaveLength(1)
})

test('without metrics nothing is counted', async () => {
  telemetry = startTelemetry({ service: 'test', version: '1', log, metrics: false })
  calls.add(1, { outcome: 'ok', tool: 'search' })
  expect(await telemetry.metricsText()).toBe('')
})
