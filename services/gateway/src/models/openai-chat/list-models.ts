import { z } from 'zod'
import type { CallLimits, DiscoveredModel } from '../provider.ts'
import { parseJson } from '../reply.ts'
import type { UpstreamConnection } from '../upstream.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'

const size = z.int().positive().optional().catch(undefined)

/** What servers say of a model beside its name differs in place and name. */
const listed = z.object({
  id: z.string().min(1).max(256),
  created: z.int().nonnegative().optional().catch(undefined),
  context_length: size,
  context_window: size,
  max_context_length: size,
  max_model_len: size,
})

/** In OpenAI's envelope, or as the bare list that some servers answer. */
const answer = z.union([z.object({ data: z.array(z.unknown()) }).transform(({ data }) => data), z.array(z.unknown())])

/** `GET /models` of a server that speaks OpenAI's API; an entry without a usable name is left out. */
export async function listModels(
  upstream: UpstreamConnection,
  limits: CallLimits,
  origin: Origin,
): Promise<DiscoveredModel[]> {
  const reply = await upstream.get('/models', limits)
  const read = answer.safeParse(parseJson((await reply.bytes()).toString('utf8'), origin))
  if (!read.success) throw brokenAnswer('unreadable', origin, new Error('no list of models'))
  return read.data.flatMap((entry) => {
    const model = listed.safeParse(entry).data
    if (!model) return []
    const contextTokens =
      model.context_length ?? model.context_window ?? model.max_context_length ?? model.max_model_len
    return [
      {
        model: model.id,
        ...(model.created !== undefined && { created: model.created }),
        ...(contextTokens !== undefined && { contextTokens }),
      },
    ]
  })
}
