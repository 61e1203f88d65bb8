import { z } from 'zod'
import { domainPolicy } from './fetch.ts'
import { fetchProvider } from './fetch-instance.ts'
import { rpc } from './rpc.ts'
import { searchOption } from './search-options.ts'
import { tenancy } from './tenancy.ts'
import { failureTag } from './tool-result.ts'

/** Longest body text of one result, in characters, with `…` when cut (S-47). */
export const RESULT_TEXT_CHARACTERS = 1_500

export const searchHit = z.object({
  title: z.string(),
  /** http or https, as the provider gave it. */
  url: z.string(),
  /** What is shown under the URL: page text where there is one, else the snippet; at most 1,500 characters. */
  text: z.string(),
  /** ISO date, or date and time with `Z` when the provider gave a time (S-46). */
  date: z.string().optional(),
})
export type SearchHit = z.infer<typeof searchHit>

/** One web search. A provider's failure is an answer, not a fault: the model reads about it (S-37). */
export const searchQuery = rpc({
  subject: 'tg.v1.search.query',
  delivery: 'direct',
  idempotent: true,
  input: z.object({
    tenancy,
    /** A named instance, or null for the in-loop default (S-30). */
    instance: z.string().nullable(),
    query: z.string().min(1).max(4_096),
    /** Wanted hits; clamped to what the provider can return (S-34). Absent: the deployment's default. */
    maxResults: z.int().positive().max(1_000).optional(),
    policy: domainPolicy.prefault({}),
    /** Options of workspace and declaration, already validated, lowest first merged (S-36). */
    options: z.record(z.string(), z.unknown()).default({}),
    /** Fetch the pages of hits that came without page text (S-55). */
    enrich: z.boolean().default(true),
  }),
  event: z.object({ type: z.enum(['searching', 'reading']) }),
  output: z.discriminatedUnion('status', [
    z.object({
      status: z.literal('ok'),
      label: z.string(),
      hits: z.array(searchHit),
      /** Decimal dollars: the provider's reported cost plus what enrichment fetches reported (P-25). */
      reportedCost: z.string().optional(),
    }),
    z.object({
      status: z.literal('failed'),
      label: z.string(),
      tag: failureTag,
      httpStatus: z.int().optional(),
    }),
  ]),
})

/** A search as the web MCP server answers it (WM-60); provider and key are the broker's own settings. */
export const searchMcp = rpc({
  subject: 'tg.v1.search.mcp',
  delivery: 'direct',
  idempotent: true,
  input: z.object({
    tenancy,
    query: z.string().min(1).max(4_096),
    numResults: z.int().positive().max(20),
    searchType: z.enum(['general', 'news']),
    searchDepth: z.enum(['basic', 'advanced', 'fast', 'ultra-fast']),
  }),
  output: z.discriminatedUnion('status', [
    z.object({
      status: z.literal('ok'),
      provider: z.enum(['tavily', 'serper', 'brave']),
      results: z.array(z.object({ title: z.string(), url: z.string(), snippet: z.string() })),
      /** What the provider reports of its own use; never our price (WM-65 to WM-69). */
      usage: z.record(z.string(), z.unknown()),
      label: z.string(),
    }),
    /** The text is safe to show: no URL, no key (WM-62, WM-64). */
    z.object({ status: z.literal('failed'), message: z.string(), label: z.string().optional() }),
  ]),
})

/** An instance as the gateway needs to know it: never its key, base URL or operator-only options. */
export const searchInstance = z.object({
  name: z.string(),
  kind: z.enum(['search', 'fetch']),
  provider: z.string(),
  maxResults: z.int().positive().optional(),
})
export type SearchInstance = z.infer<typeof searchInstance>

/** A search provider this deployment knows, configured or not (SP-01), without what only its operator may set. */
export const searchProvider = z.object({
  id: z.string(),
  requiresApiKey: z.boolean(),
  requiresApiBase: z.boolean(),
  /** The vendor's public address; absent where every deployment has its own. */
  defaultApiBase: z.string().optional(),
  docUrl: z.string(),
  maxResults: z.int().positive().optional(),
  queryInUrl: z.boolean(),
  keyInUrl: z.boolean(),
  /** What a declaration or a workspace may set; anything else is refused or dropped (S-35). */
  options: z.array(searchOption),
})
export type SearchProviderEntry = z.infer<typeof searchProvider>

/** What the deployment can search and fetch with; the gateway caches it and drops it on `changed.settings`. */
export const searchDescribe = rpc({
  subject: 'tg.v1.search.describe',
  delivery: 'direct',
  idempotent: true,
  input: z.object({}),
  output: z.object({
    instances: z.array(searchInstance),
    providers: z.array(searchProvider).default([]),
    /** What a model-initiated search runs on (S-30); null when the deployment itself cannot search. */
    inLoop: z
      .object({
        kind: z.enum(['instance', 'legacy']),
        label: z.string(),
        instance: z.string().nullable(),
        provider: z.string(),
      })
      .nullable(),
    fetchProviders: z.array(fetchProvider).default([]),
    /** The instance that fetches pages for models (F-19); null: the built-in fetcher. */
    inLoopFetch: z.object({ label: z.string(), instance: z.string(), provider: z.string() }).nullable().default(null),
  }),
})
