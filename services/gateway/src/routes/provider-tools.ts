import { Fault } from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { operatorOnly } from '../auth/authenticate.ts'
import { requestEnds } from '../conversation/request-end.ts'
import { probeTool } from '../loop/probe.ts'
import type { ModelRegistry } from '../models/registry.ts'
import type { GatewaySettings } from '../settings.ts'
import { shortText } from './wire.ts'

const schema = {
  tags: ['models'],
  summary: 'Measure how a backend takes its own tool',
  description:
    'Asks the model twice, with the tool alone and beside a function. This costs money: two short completions, and a fee where the provider has one, paid by the deployment and in nobody’s usage. It changes nothing.',
  body: z.strictObject({
    seat: shortText.describe('A name of `models` in the configuration'),
    tool: z.string().min(1).max(64).describe('The tool, exactly as the backend names it'),
  }),
  response: {
    200: z.strictObject({
      object: z.literal('provider_tool_probe'),
      seat: z.string(),
      tool: z.string(),
      result: z.enum(['mixed_ok', 'alone_only', 'unsupported']),
      setting: z
        .union([
          z.strictObject({ provider_executed_tools: z.array(z.string()) }),
          z.strictObject({ delegated_search: z.string() }),
        ])
        .nullable()
        .describe('What to configure; null: neither setting'),
    }),
  },
}

/** `POST /provider-tools/probe`: which of the two settings a seat needs is measured, not guessed (PE-44, PE-45). */
export const providerToolRoutes =
  (
    { models, settings }: { models: ModelRegistry; settings: Pick<GatewaySettings, 'requestTimeoutMs'> },
    cut: AbortSignal,
  ): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    const endOf = requestEnds(cut)
    app.post('/provider-tools/probe', { schema, onRequest: operatorOnly }, async ({ body: { seat, tool } }, reply) => {
      if (!models.seats().some(({ name }) => name === seat))
        throw new Fault('not_found', `No seat '${seat}' is configured`)
      const resolved = models.resolve(seat, 'chat')
      if (resolved.provider.wire !== 'openai-chat')
        throw new Fault('invalid_request', `The seat '${seat}' does not speak Chat Completions`)
      const end = endOf(reply, settings.requestTimeoutMs)
      try {
        const result = await probeTool(resolved, tool, end)
        return { object: 'provider_tool_probe' as const, seat, tool, result, setting: settingFor(result, tool) }
      } finally {
        end.done()
      }
    })
    done()
  }

function settingFor(result: 'mixed_ok' | 'alone_only' | 'unsupported', tool: string) {
  switch (result) {
    case 'mixed_ok':
      return { provider_executed_tools: [tool] }
    case 'alone_only':
      return { delegated_search: tool }
    case 'unsupported':
      return null
    default:
      return result satisfies never
  }
}
