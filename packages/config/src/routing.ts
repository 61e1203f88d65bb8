import { z } from 'zod'

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._/-]{0,127}$/i, 'letters, digits, . _ / and -: a colon is for models of a provider')
const selector = z.string().regex(/^[^:\s]+:\S+$/, 'must be provider:model')

/** A model of a provider, or the name that one has in `models`. */
const model = z.union([selector, name])

const candidate = z.union([
  model.transform((named) => ({ model: named, weight: undefined })),
  z.strictObject({ model, weight: z.number().positive().max(1_000_000).optional() }),
])

/** Failures of a provider after which a policy may ask another; a client's own mistake is never among them. */
const failure = z.enum([
  'rate_limit',
  'server_error',
  'timeout',
  'connection',
  'broken_answer',
  'account',
  'not_found',
  'busy',
])

/** Models that are tried one after the other, by the name that a request gives for its model. */
const policy = z.strictObject({
  candidates: z.array(candidate).min(1).max(32),
  retry_on: z.array(failure).default([...failure.options]),
  cool_down_sec: z.number().min(0).max(300).optional(),
  attempt_timeout_sec: z.number().positive().max(3_600).optional(),
})

export const routing = z.record(name, policy).default({})
export const modelAliases = z.record(name, z.union([name, selector])).default({})
