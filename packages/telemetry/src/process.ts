import { monitorEventLoopDelay } from 'node:perf_hooks'
import { observe } from './metrics.ts'

const NANOSECONDS = 1e9

/** Memory, processor time and how late the event loop runs: what a process's health is read from. */
export function watchProcess(): () => void {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  const alone = (value: number) => [{ value, values: {} }]
  const ends = [
    observe('process_resident_memory_bytes', 'Memory the process holds', {}, () => alone(process.memoryUsage.rss())),
    observe('nodejs_heap_used_bytes', 'JavaScript heap in use', {}, () => alone(process.memoryUsage().heapUsed)),
    observe(
      'process_cpu_seconds_total',
      'Processor time, user and system',
      { mode: ['user', 'system'] },
      () => {
        const { user, system } = process.cpuUsage()
        return [
          { value: user / 1e6, values: { mode: 'user' } },
          { value: system / 1e6, values: { mode: 'system' } },
        ]
      },
      'total',
    ),
    observe(
      'nodejs_eventloop_lag_seconds',
      'Event loop delay since the last scrape',
      { quantile: ['0.5', '0.99', 'max'] },
      () => {
        // an empty histogram answers NaN for quantiles it has none of
        const seconds = (nanoseconds: number) => (Number.isFinite(nanoseconds) ? nanoseconds / NANOSECONDS : 0)
        const readings = [
          { value: seconds(delay.percentile(50)), values: { quantile: '0.5' } },
          { value: seconds(delay.percentile(99)), values: { quantile: '0.99' } },
          { value: seconds(delay.max), values: { quantile: 'max' } },
        ]
        delay.reset()
        return readings
      },
    ),
    observe('process_uptime_seconds', 'Time since the process started', {}, () => alone(process.uptime())),
  ]
  return () => {
    delay.disable()
    for (const end of ends) end()
  }
}
