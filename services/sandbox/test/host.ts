import { readdirSync, readFileSync } from 'node:fs'

/** Processes of this machine whose command line or name holds `text`. */
export function processesWith(text: string): number[] {
  const found: number[] = []
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    try {
      if (readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(text)) found.push(Number(name))
    } catch {
      // ended while we looked
    }
  }
  return found
}

/** Processes that come from this one, zombies left out. */
export function descendantsOf(pid: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const [state = '', parent = ''] = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')
      if (state !== 'Z') children.set(Number(parent), [...(children.get(Number(parent)) ?? []), Number(name)])
    } catch {
      // ended while we looked
    }
  }
  const found: number[] = []
  const queue = [pid]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    for (const child of children.get(next) ?? []) {
      found.push(child)
      queue.push(child)
    }
  }
  return found
}

/** Those that are still there, zombies left out. */
export const alive = (pids: number[]): number[] => {
  const all = new Set(descendantsOf(0))
  return pids.filter((pid) => all.has(pid))
}

/** Resident memory of this process, in bytes. */
export const residentBytes = (): number => process.memoryUsage.rss()
