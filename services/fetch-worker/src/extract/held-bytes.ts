import { readFileSync } from 'node:fs'

const PAGE_BYTES = 4096
/** Where Linux says how many pages a process has (proc(5)): the sixth is its data, which is what its cap counts. */
const STATM = '/proc/self/statm'
const DATA = 5

/** Bytes of memory this process holds, touched or only asked for: what the next body finds gone from the cap. */
export function heldBytes(): number {
  const rss = process.memoryUsage.rss()
  if (process.platform !== 'linux') return rss
  return Math.max(rss, Number(readFileSync(STATM, 'latin1').split(' ')[DATA]) * PAGE_BYTES)
}
