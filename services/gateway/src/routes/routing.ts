import { Fault } from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { requestEnds } from '../conversation/request-end.ts'
import { failureKinds } from '../models/failure-kind.ts'
import { type ExplainNeeds, explain } from '../routing/explain.ts'
import type { Routing, RoutingPolicy } from '../routing/routing.ts'
import { shortText } from './wire.ts'

const policy = z.strictObject({
  object: z.literal('routing_policy'),
  name: z.string(),
  candidates: z.array(z.strictObject({ model: z.string(), weight: z.number().optional() })),
  retry_on: z.array(z.enum(failureKinds)).describe('Failures of a candidate after which the next one is asked'),
  cool_down_sec: z.number().nullable().describe('How long a failing candidate rests; null: the usual time'),
  attempt_timeout_sec: z
    .number()
    .nullable()
    .describe('What a candidate has to begin its answer; null: no limit of its own'),
  aliases: z.array(z.string()).describe('Other names of the policy'),
})

const question = z.strictObject({
  dialect: z.enum(['chat', 'messages', 'responses']).default('chat').describe('The API that the request would call'),
  tools: z
    .array(z.record(z.string(), z.json()))
    .max(128)
    .default([])
    .describe('The request’s `tools`, as that API has them'),
  headers: z.record(z.string().max(64), z.string().max(256)).default({}).describe('Headers that say who runs a tool'),
  container: z.json().optional(),
  mcp_servers: z.json().optional().describe('MCP servers, as the request would name them'),
  mcp_server_ids: z.json().optional(),
})

const answer = z.strictObject({
  object: z.literal('routing_explanation'),
  policy: z.string(),
  candidates: z
    .array(
      z.strictObject({
        model: z.string(),
        seat: z
          .string()
          .nullable()
          .describe('The name of the model’s own in the configuration, where its backend runs tools'),
        action: z.enum(['ask', 'skip']),
        why: z.string().nullable().describe('Of one that is skipped'),
        state: z.enum(['ready', 'on_trial', 'cooling']),
        cooling_for_ms: z.int().nullable(),
        tools: z.array(
          z.strictObject({
            tool: z.string(),
            runs_at: z.enum(['gateway', 'provider', 'client']),
            server: z.string().optional().describe('The MCP server that has it'),
          }),
        ),
      }),
    )
    .describe('In the order in which they would be tried; those with weights as one draw of many has them'),
})

/** Longer than the servers of a request have to say what they offer. */
const EXPLAIN_MS = 30_000
const tags = ['models']
const params = z.object({ name: shortText })

/** `/routing/policies`: what the deployment's policies are, and what one would do with a request. */
export const routingRoutes =
  (needs: ExplainNeeds, cut: AbortSignal): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    const { routing } = needs
    const endOf = requestEnds(cut)
    const list = z.strictObject({ object: z.literal('list'), data: z.array(policy) })
    app.get(
      '/routing/policies',
      { schema: { tags, summary: 'List the routing policies', response: { 200: list } } },
      async () => ({
        object: 'list' as const,
        data: Array.from(routing.policies, ([name, one]) => show(name, one, routing)),
      }),
    )
    app.get(
      '/routing/policies/:name',
      { schema: { tags, summary: 'Show a routing policy', params, response: { 200: policy } } },
      async ({ params: { name } }) => show(name, found(name), routing),
    )
    app.post(
      '/routing/policies/:name/explain',
      {
        schema: {
          tags,
          summary: 'Say what a routing policy would do',
          description:
            'Which candidates a request with these tools would try, in which order, and why one would be skipped. No model is called; MCP servers are asked what they offer.',
          params,
          body: question,
          response: { 200: answer },
        },
      },
      async ({ params: { name }, body, identity, id }, reply) => {
        found(name)
        const end = endOf(reply, EXPLAIN_MS)
        const candidates = await explain(needs, name, body, identity, id, end).finally(end.done)
        return { object: 'routing_explanation' as const, policy: name, candidates }
      },
    )
    done()

    function found(name: string): RoutingPolicy {
      const one = routing.policies.get(name)
      if (one === undefined) throw new Fault('not_found', `Routing policy '${name}' not found`)
      return one
    }
  }

function show(name: string, { candidates, retryOn, coolDownMs, attemptTimeoutMs }: RoutingPolicy, routing: Routing) {
  return {
    object: 'routing_policy' as const,
    name,
    candidates: candidates.map(({ model, weight }) => ({ model, ...(weight !== undefined && { weight }) })),
    retry_on: [...retryOn],
    cool_down_sec: coolDownMs === undefined ? null : coolDownMs / 1_000,
    attempt_timeout_sec: attemptTimeoutMs === undefined ? null : attemptTimeoutMs / 1_000,
    aliases: routing.aliasesOf(name),
  }
}
