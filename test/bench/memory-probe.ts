import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Loaded into a process under measurement: tells what it holds when nothing is left that could be collected. */
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

process.on('message', (asked) => {
  if (asked !== 'memory') return
  collect()
  process.send?.(process.memoryUsage())
})
// being asked is no reason to live on
process.channel?.unref()
