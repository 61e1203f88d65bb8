import { Fault } from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { permits } from '../auth/allowed-models.ts'
import type { Identity } from '../auth/identity.ts'

export interface ListedModel {
  /** `instance:model`, as a request names it. */
  id: string
  /** The instance's name. */
  provider: string
}

const entry = z.strictObject({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
})
const tags = ['models']

/** `/models` in OpenAI's shape: what the operator listed for each provider, less what the key may not use. */
export const modelRoutes =
  ({ listModels }: { listModels(): readonly ListedModel[] }): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.get(
      '/models',
      {
        schema: {
          tags,
          summary: 'List models',
          response: { 200: z.strictObject({ object: z.literal('list'), data: z.array(entry) }) },
        },
      },
      async ({ identity }) => ({ object: 'list' as const, data: permitted(identity).map(show) }),
    )

    // a wildcard, since names of models have slashes in them
    app.get(
      '/models/*',
      { schema: { tags, summary: 'Show a model', params: z.object({ '*': z.string() }), response: { 200: entry } } },
      async ({ identity, params: { '*': id } }) => {
        const found = permitted(identity).find((model) => model.id === id)
        if (!found) throw new Fault('not_found', `Model '${id}' not found`)
        return show(found)
      },
    )
    done()

    function permitted({ allowedModels }: Identity): ListedModel[] {
      return listModels().filter((model) => permits(allowedModels, model.id))
    }
  }

/** Providers do not tell us when a model was made; clients want a number. */
const show = ({ id, provider }: ListedModel) => ({ id, object: 'model' as const, created: 0, owned_by: provider })
