import { openLog } from '@tollgate/telemetry'

/** A process that says a number of things and leaves at once. */
const log = openLog({ service: 'last-words', level: 'info' })
for (let n = 0; n < 50; n += 1) {
  if (n === 25) await new Promise(setImmediate)
  log.info({ n }, 'said')
}
process.exit(0)
