import { toolSettings } from '@tollgate/contracts'
import { z } from 'zod'
import { modelAliases, routing } from './routing.ts'
import { seats } from './seats.ts'

const seconds = z.int().nonnegative()
const secret = z.string().min(1)
const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL' })
const decimal = z.union([z.number().nonnegative(), z.string().regex(/^\d+(\.\d+)?$/, 'must be a non-negative number')])

/** Host names, as a list or as one text with commas between them. */
const hostList = z.preprocess(
  (value) => (typeof value === 'string' ? value.split(',').flatMap((host) => host.trim() || []) : value),
  z.array(z.string().min(1)).max(1_000),
)

/** A model provider instance; its name in `providers` is what stands before the colon of a model selector. */
const provider = z.strictObject({
  type: z
    .enum([
      'openai',
      'anthropic',
      'gemini',
      'deepseek',
      'mistral',
      'groq',
      'together',
      'ollama',
      'vllm',
      'openai-compatible',
      'openai-responses',
      'anthropic-compatible',
    ])
    .optional(),
  api_key: secret.optional(),
  api_base: httpUrl.optional(),
  /** The one API an `openai` instance is asked by; that of the client's dialect where it is left out. */
  wire: z.enum(['openai-chat', 'openai-responses']).optional(),
  /** Names listed under `/models`; any other name of the provider may still be asked for. */
  models: z.array(z.string().min(1)).default([]),
})

/** Those whose address is known. */
const vendors: ReadonlySet<string> = new Set(
  provider.shape.type.unwrap().options.filter((type) => !/-(compatible|responses)$/.test(type)),
)

/** An instance named for its vendor needs to say no more; any other says what it speaks and, where that is no vendor, where. */
function checkProviders(providers: Record<string, z.infer<typeof provider>>, context: z.RefinementCtx): void {
  for (const [name, { type, api_base: base, wire }] of Object.entries(providers)) {
    if (type === undefined && !vendors.has(name))
      context.addIssue({
        code: 'custom',
        path: [name, 'type'],
        message: `is needed where the name is none of ${Array.from(vendors).join(', ')}`,
      })
    if (type !== undefined && !vendors.has(type) && base === undefined)
      context.addIssue({ code: 'custom', path: [name, 'api_base'], message: `is needed for type ${type}` })
    if (wire !== undefined && (type ?? name) !== 'openai')
      context.addIssue({ code: 'custom', path: [name, 'wire'], message: 'is for type openai alone' })
  }
}

/** A fetch instance (FP-01); which providers there are is the search-broker's to know. */
const fetchTool = z.strictObject({
  provider: z.string().min(1).optional(),
  api_key: secret.optional(),
  api_base: httpUrl.optional(),
  timeout: z.number().positive().optional(),
  options: z.record(z.string(), z.unknown()).default({}),
  price_per_call: decimal.optional(),
})

/** A search instance (CFG-25, CFG-56). */
const searchTool = fetchTool.extend({ fetch_tool: z.string().min(1).optional() })

/** Every setting, its default and its bounds. What is unknown or malformed stops the start. */
export const configSchema = z.strictObject({
  // the process
  host: z.string().min(1).default('0.0.0.0'),
  port: z.int().min(0).max(65_535).default(8000),
  health_host: z.string().min(1).default('0.0.0.0'),
  /** Port of `/livez`, `/readyz` and `/metrics`; 0 serves none. */
  health_port: z.int().min(0).max(65_535).default(9090),
  data_dir: z.string().min(1).default('data'),
  log_level: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
  drain_sec: seconds.default(30),
  /** Wait between "not ready" and closing the door, for load balancers to notice; 0 outside Kubernetes. */
  drain_delay_sec: seconds.default(0),
  otlp_endpoint: httpUrl.optional(),
  trace_sample_ratio: z.number().min(0).max(1).default(1),

  // what the services meet at
  database_url: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must begin with postgres://')
    .optional(),
  database_pool: z.int().min(1).max(200).default(10),
  nats_url: z.string().min(1).optional(),
  nats_prefix: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]{0,30}$/, 'lower-case letters, digits, - and _')
    .default('tg'),
  nats_replicas: z.int().min(1).max(5).default(1),

  // the gateway
  master_key: z.string().min(16, 'must have at least 16 characters').optional(),
  public_base_url: httpUrl.optional(),
  reject_user_mismatch: z.boolean().default(true),
  rate_limit_rpm: z.int().positive().optional(),
  request_timeout_ms: z.int().min(1_000).max(3_600_000).default(600_000),
  /** For a client that takes no byte of a finished answer; in the bundled sandbox too. */
  unread_answer_timeout_sec: z.int().min(1).max(3_600).default(60),
  body_limit_bytes: z
    .int()
    .min(1_024)
    .default(32 * 1024 * 1024),
  /** 0: the Responses API keeps nothing. */
  responses_retention_days: z.int().min(0).max(3_650).default(30),
  streaming_keepalive_interval_ms: z.int().nonnegative().default(15_000),
  providers: z
    .record(z.string().regex(/^[a-z0-9][a-z0-9._-]*$/i, 'letters, digits, . _ and -'), provider)
    .superRefine(checkProviders)
    .default({}),
  demo_provider: z.boolean().default(true),
  routing,
  model_aliases: modelAliases,
  models: seats,
  /** How often providers without a list of models are asked for theirs; 0 never asks. */
  model_discovery_interval_sec: z.int().min(0).max(86_400).default(3_600),

  // money
  require_pricing: z.boolean().default(true),
  default_pricing: z.boolean().default(false),
  stream_missing_usage_policy: z.enum(['estimate', 'fail', 'allow_free']).default('estimate'),
  budget_estimate_default_output_tokens: z.int().positive().default(1024),
  sweep_interval_sec: z.int().positive().default(15),
  /** How long after its end a hold is left alone: its settlement may still be on its way. */
  sweep_grace_sec: z.int().nonnegative().default(30),

  // tools
  tools_header: z.string().max(4_000).optional(),
  web_search_intercept: toolSettings.web_search_intercept.default(false),
  web_search_default_tool: toolSettings.web_search_default_tool.optional(),
  web_search_provider: toolSettings.web_search_provider.optional(),
  web_search_provider_api_key: secret.optional(),
  web_search_url: toolSettings.web_search_url.optional(),
  web_search_engines: toolSettings.web_search_engines.optional(),
  web_search_max_results: toolSettings.web_search_max_results.optional(),
  web_search_extract: toolSettings.web_search_extract.optional(),
  web_search_purpose_hint: toolSettings.web_search_purpose_hint.optional(),
  web_search_allow_private_hosts: toolSettings.web_search_allow_private_hosts.default(false),
  web_search_max_calls: toolSettings.web_search_max_calls.default(10),
  web_search_workspace_default: z.boolean().default(true),
  search_tools: z.record(z.string(), searchTool).default({}),
  web_fetch_enabled: z.boolean().default(false),
  web_fetch_default_tool: toolSettings.web_fetch_default_tool.default('builtin_fetch'),
  fetch_tools: z.record(z.string(), fetchTool).default({}),
  web_retrieval_trust_env_proxy: z.boolean().default(false),
  fetch_slots: z.int().min(1).max(256).default(8),
  fetch_threads: z.int().min(1).max(64).default(2),
  fetch_cache_sec: z.int().min(0).max(3_600).default(60),
  fetch_robots: z.boolean().default(false),
  render_slots: z.int().min(1).max(32).default(2),
  render_browser: z.string().min(1).optional(),
  /** Off where a container that forbids namespaces is the sandbox. */
  render_sandbox: z.boolean().default(true),

  // the web MCP server; its provider is checked when it is used (WM-12)
  mcp_web_enabled: z.boolean().default(true),
  /** Whether there is a render-worker, and with it `fetch_webpage_rendered` (WM-07). */
  mcp_browser_enabled: z.boolean().default(false),
  mcp_web_allowed_origins: z.array(z.url()).max(100).default([]),
  mcp_web_search_provider: z.string().min(1).optional(),
  mcp_web_search_api_key: secret.optional(),
  mcp_web_search_api_base: httpUrl.optional(),
  mcp_web_fetch_timeout_sec: z.number().positive().max(600).default(30),
  mcp_web_fetch_ceiling_sec: z.int().min(1).max(120).default(120),
  mcp_web_fetch_max_bytes: z.int().positive().max(64_000_000).default(2_000_000),
  mcp_web_fetch_max_redirects: z.int().nonnegative().max(50).default(5),
  mcp_web_fetch_allow_hosts: hostList.default([]),
  mcp_fetch_image_max_bytes: z.int().positive().max(64_000_000).default(10_000_000),
  mcp_image_max_edge_px: z.int().positive().max(16_384).default(1_568),
  /** Millions of bytes (WA-21). */
  mcp_image_max_mb: z.number().positive().max(5).default(3),

  // MCP servers that requests name
  mcp_allow_loopback: z.boolean().default(true),
  mcp_allow_private_hosts: z.boolean().default(false),

  // code execution
  sandbox_provider: z.enum(['protocol', 'e2b']).default('protocol'),
  sandbox_e2b_template: z.string().min(1).max(128).default('code-interpreter-v1'),
  /** Whether code in a hosted sandbox reaches the internet. */
  sandbox_e2b_internet: z.boolean().default(false),
  /** For a deployment of E2B's infrastructure of one's own; the two URLs follow from it when absent. */
  sandbox_e2b_domain: z
    .string()
    .regex(/^[a-z0-9.-]{1,255}$/i, 'must be a host name')
    .default('e2b.app'),
  sandbox_e2b_api_url: httpUrl.optional(),
  sandbox_e2b_sandbox_url: httpUrl.optional(),
  sandbox_url: toolSettings.sandbox_url.optional(),
  sandbox_token: secret.optional(),
  sandbox_purpose_hint: toolSettings.sandbox_purpose_hint.optional(),
  sandbox_session_image: z.string().min(1).optional(),
  sandbox_allowed_session_images: z.array(z.string().min(1).max(512)).max(100).default([]),
  sandbox_exec_timeout_sec: z.int().min(1).max(60).default(60),
  /** 0 keeps no sandbox beyond its request (C-08). */
  sandbox_container_idle_ttl_sec: z.int().min(0).max(86_400).default(600),
  sandbox_container_max_lifetime_sec: z.int().min(1).max(86_400).default(3_600),
  code_execution_executor: toolSettings.code_execution_executor.default('auto'),
  code_execution_workspace_default: z.boolean().default(true),

  // files
  files_enabled: z.boolean().default(true),
  /** Unset: a folder for a process of its own (`run.ts all`), and for services the object store that they share. */
  files_backend: z.enum(['local', 'objects']).optional(),
  /** Of `local`; below `data_dir` unless it is absolute. */
  files_local_dir: z.string().min(1).default('./otari-files'),
  files_max_bytes: z
    .int()
    .positive()
    .default(512 * 1024 * 1024),
  /** Of `objects`: bytes of all files together. */
  files_objects_max_bytes: z
    .int()
    .positive()
    .default(8 * 1024 * 1024 * 1024),
  files_retention_hours: z.number().positive().max(1_000_000).optional(),
  files_sweep_interval_sec: z.int().min(1).max(86_400).default(3_600),
  files_output_max_files: z.int().min(0).max(1_000).default(20),
  files_output_max_bytes: z
    .int()
    .nonnegative()
    .default(100 * 1024 * 1024),

  // the bundled sandbox (`run.ts sandbox`, and `run.ts all` when no sandbox_url is set)
  sandbox_bundled: z.boolean().default(true),
  sandbox_host: z.string().min(1).default('127.0.0.1'),
  sandbox_port: z.int().min(0).max(65_535).default(8080),
  sandbox_python: z.string().min(1).optional(),
  sandbox_min_isolation: z.enum(['process', 'landlock', 'landlock-uid', 'ns']).optional(),
  sandbox_max_sessions: z.int().min(1).max(10_000).default(64),
})

export type Config = z.infer<typeof configSchema>

/** Settings whose values are never printed. */
export const secretSettings: ReadonlySet<string> = new Set([
  'master_key',
  'web_search_provider_api_key',
  'mcp_web_search_api_key',
  'sandbox_token',
  'api_key',
])
/** Settings that hold a URL which may carry a password. */
export const credentialUrls: ReadonlySet<string> = new Set(['database_url', 'nats_url'])
