import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { z } from 'zod'
import { natsBus } from '../src/index.ts'
import { echoBy, listLog } from './contracts.ts'

// A worker in a process of its own, for tests that kill or stop one. It says on stdout what it starts.

const settings = z
  .object({
    servers: z.string(),
    prefix: z.string(),
    delivery: z.enum(['direct', 'queue']),
    idempotent: z.boolean(),
    slots: z.int(),
    /** How long each call takes. */
    takesMs: z.number(),
    timing: z.record(z.string(), z.number()),
  })
  .parse(JSON.parse(process.argv[2] ?? ''))

const { servers, prefix, timing, delivery, idempotent, slots, takesMs } = settings
const bus = await natsBus({ servers, prefix, timing, name: 'worker', log: listLog().log })
await bus.serve(
  echoBy(delivery, idempotent),
  async ({ text }, { attempt, emit }) => {
    emit({ type: 'begun' })
    // whoever reads this may kill us at once: by then the caller has heard which attempt it is
    await turn()
    await turn()
    process.stdout.write(`started ${text} ${attempt}\n`)
    await sleep(takesMs)
    return { text: `${text} by a process` }
  },
  { slots },
)
process.stdout.write('ready\n')
