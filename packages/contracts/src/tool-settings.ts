import { z } from 'zod'
import { parseUrl } from './parse-url.ts'
import { rpc } from './rpc.ts'

/** Where a backend of the operator's own is (CP-27). Its path is built upon, and operators are shown it as it is. */
export const backendUrl = z
  .url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL' })
  .max(2_048)
  .refine((text) => {
    const url = parseUrl(text)
    // an empty query swallows the path behind it as well
    return !(url?.username || url?.password || /[?#]/.test(text))
  }, 'must have no user, query or fragment')

const hint = z
  .string()
  .max(2_048)
  .regex(/^[^\0\p{Cs}]*$/u, 'must have no NUL and no half of a surrogate pair')
  .regex(/\S/, 'must not be blank')
const toolName = z.string().min(1).max(255)

/** X-02: as people write it, whatever the letters' case and the blanks around. */
export const executor = z.preprocess(
  (given) => (typeof given === 'string' ? given.trim().toLowerCase() : given),
  z.enum(['auto', 'otari', 'provider']),
)

/** The settings that operators may change while the services run (CFG-51): each as the config file has it too. */
export const toolSettings = {
  code_execution_executor: executor,
  sandbox_url: backendUrl,
  sandbox_purpose_hint: hint,
  web_search_intercept: z.boolean(),
  /** A search instance, or `none`. */
  web_search_default_tool: toolName,
  web_search_provider: z.enum(['tavily', 'brave']),
  web_search_url: backendUrl,
  /** SearXNG's names of them, with commas between. */
  web_search_engines: z
    .string()
    .max(1_000)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must have no control characters and no half of a surrogate pair')
    .regex(/\S/, 'must not be blank'),
  /** No more than one search may ask for. */
  web_search_max_results: z.int().min(1).max(1_000),
  web_search_extract: z.boolean(),
  web_search_purpose_hint: hint,
  web_search_allow_private_hosts: z.boolean(),
  web_search_max_calls: z.int().min(1),
  /** A fetch instance, or `builtin_fetch`. */
  web_fetch_default_tool: toolName,
}

export type ToolSettingKey = keyof typeof toolSettings

/** What was set while the services ran; where a member is absent, the config file and the environment are in force. */
export const runtimeSettings = z.object(toolSettings).partial()
export type RuntimeSettings = z.infer<typeof runtimeSettings>

/** The stored ones as they are now. Services that act on some read them on `changed.settings`, and now and then (CFG-52). */
export const runtimeSettingsRead = rpc({
  subject: 'tg.v1.gateway.tool-settings',
  delivery: 'direct',
  idempotent: true,
  input: z.object({}),
  output: runtimeSettings,
})

const judged = {
  delivery: 'direct',
  idempotent: true,
  input: runtimeSettings,
  /** Empty where all of it may come into force. */
  output: z.object({ problems: z.array(z.object({ key: z.string(), why: z.string() })) }),
} as const
/** What only who acts on a setting can judge of a value, before it is stored. */
export const searchJudgeSettings = rpc({ subject: 'tg.v1.search.judge-settings', ...judged })
export const sandboxJudgeSettings = rpc({ subject: 'tg.v1.sandbox.judge-settings', ...judged })

const tried = {
  delivery: 'direct',
  idempotent: true,
  input: z.object({ url: backendUrl }),
  /** `reason`: why not, in words of our own. */
  output: z.object({ ok: z.boolean(), reason: z.string().nullable() }),
} as const
/** Whether a backend answers at this address as it should (CFG-54). Nothing is changed by it. */
export const searchTry = rpc({ subject: 'tg.v1.search.try', ...tried })
export const sandboxTry = rpc({ subject: 'tg.v1.sandbox.try', ...tried })
