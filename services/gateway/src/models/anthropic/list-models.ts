import { z } from 'zod'
import type { CallLimits, DiscoveredModel } from '../provider.ts'
import { parseJson } from '../reply.ts'
import type { UpstreamConnection } from '../upstream.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'

const listed = z.object({
  id: z.string().min(1).max(256),
  created_at: z.iso.datetime({ offset: true }).optional().catch(undefined),
  max_input_tokens: z.int().positive().optional().catch(undefined),
})
const answer = z.object({ data: z.array(z.unknown()) })

/** `GET /v1/models` of Anthropic's API, as many as it gives at once. */
export async function listModels(
  upstream: UpstreamConnection,
  limits: CallLimits,
  origin: Origin,
): Promise<DiscoveredModel[]> {
  const reply = await upstream.get('/v1/models?limit=1000', limits)
  const read = answer.safeParse(parseJson((await reply.bytes()).toString('utf8'), origin))
  if (!read.success) throw brokenAnswer('unreadable', origin, new Error('no list of models'))
  return read.data.data.flatMap((entry) => {
    const model = listed.safeParse(entry).data
    if (!model) return []
    const { id, created_at: at, max_input_tokens: contextTokens } = model
    return [
      {
        model: id,
        ...(at !== undefined && { created: Math.floor(Date.parse(at) / 1_000) }),
        ...(contextTokens !== undefined && { contextTokens }),
      },
    ]
  })
}
