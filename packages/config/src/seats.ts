import { seatMistake, seatSettings } from '@tollgate/contracts'
import { z } from 'zod'

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._/-]{0,127}$/i, 'letters, digits, . _ / and -: a colon is for models of a provider')

/** Models by names of the deployment's own, with what their backends run by themselves. */
export const seats = z
  .record(name, seatSettings)
  .superRefine((given, context) => {
    for (const [seat, settings] of Object.entries(given)) {
      const message = seatMistake(seat, settings)
      if (message !== undefined) context.addIssue({ code: 'custom', path: [seat], message })
    }
  })
  .default({})
