/**
 * Milliseconds of processor time this process has used since the clock was opened. A body is limited by the work it makes,
 * not by how busy the machine is with other things; a process reads one body at a time, so its time is the body's.
 */
export function openCpuClock(): () => number {
  const start = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(start)
    return (user + system) / 1_000
  }
}
