import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import type { JsonObject } from '../conversation/turn.ts'
import { isConfigured } from '../tools/away.ts'
import { bareHost, MOST_DOMAINS } from '../tools/domains.ts'
import { webSearch } from '../tools/web-search.ts'
import { hint, jsonText } from './wire.ts'
import { type PolicyNeeds, workspacePolicyRoutes } from './workspace-policy.ts'

/** W-42. Kept as hosts are compared (W-34): lower case, in ASCII, without a dot at the end. */
const domains = z
  .array(
    z
      .string()
      .max(253)
      .transform((text, context) => {
        const host = bareHost(text)
        if (host !== undefined) return host
        context.addIssue({ code: 'custom', message: 'must be a bare host name, such as example.com' })
        return z.NEVER
      }),
  )
  .max(MOST_DOMAINS)

const MOST_OPTIONS = 30
const MOST_OPTION_BYTES = 4_096
const options = jsonText
  .refine((value) => Object.keys(value).length <= MOST_OPTIONS, `must have at most ${MOST_OPTIONS} members`)
  .refine(
    (value) => Buffer.byteLength(JSON.stringify(value)) <= MOST_OPTION_BYTES,
    `must be at most ${MOST_OPTION_BYTES} bytes of JSON`,
  )

const body = z.strictObject({
  enabled: z.boolean().describe('False closes every door to the web: searches and fetches, with a model or without'),
  max_results: z.int().min(1).max(1_000).nullable().default(null).describe('Most results of a search'),
  allowed_domains: domains.nullable().default(null).describe('Only these, and names under them'),
  blocked_domains: domains.nullable().default(null),
  purpose_hint: hint.nullable().default(null).describe('Where a declaration has no hint of its own'),
  provider_options: options.nullable().default(null).describe('Options of the search provider'),
})

const shape = {
  max_results: z.int().nullable(),
  allowed_domains: z.array(z.string()).nullable(),
  blocked_domains: z.array(z.string()).nullable(),
  purpose_hint: z.string().nullable(),
  provider_options: z.record(z.string(), z.unknown()).nullable(),
  web_search_configured: z.boolean(),
}

/** `/workspaces/{id}/web-search`: where a workspace may go on the web, if anywhere (W-30). */
export const webPolicyRoutes = ({ settings, capabilities, ...needs }: PolicyNeeds): FastifyPluginCallbackZod =>
  workspacePolicyRoutes(needs, {
    table: 'gateway.web_access_policies',
    path: 'web-search',
    name: 'web-access policy',
    body,
    shape,
    enabledByDefault: () => settings.webSearchWorkspaceDefault,
    columns: ({ provider_options: given, ...wanted }) => ({
      ...wanted,
      provider_options: given && JSON.stringify(given),
    }),
    show: async (row) => ({
      max_results: row?.max_results ?? null,
      allowed_domains: row?.allowed_domains ?? null,
      blocked_domains: row?.blocked_domains ?? null,
      purpose_hint: row?.purpose_hint ?? null,
      provider_options: (row?.provider_options as JsonObject | null | undefined) ?? null,
      web_search_configured: isConfigured(webSearch, await capabilities()),
    }),
  })
