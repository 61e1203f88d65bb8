import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import type { Capabilities } from '../tools/capabilities.ts'
import { describeTools } from '../tools/registry.ts'

const entry = z.strictObject({
  id: z.string(),
  object: z.literal('tool'),
  description: z.string(),
  available: z.boolean().describe('Whether this deployment can run it'),
  accepted_types: z.array(z.string()).describe('Types by which a request may declare it'),
  input_schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the arguments a model gives'),
  example: z.strictObject({ type: z.string() }).describe('An entry for the request’s tools'),
})

const schema = {
  tags: ['tools'],
  summary: 'List the tools this gateway runs',
  response: { 200: z.strictObject({ object: z.literal('list'), data: z.array(entry) }) },
}

/** `GET /tools`: every tool known here, also those this deployment cannot run (T-04..T-06). */
export const toolRoutes =
  ({ capabilities }: { capabilities(): Promise<Capabilities> }): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.get('/tools', { schema }, async () => ({ object: 'list' as const, data: describeTools(await capabilities()) }))
    done()
  }
