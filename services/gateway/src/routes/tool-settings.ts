import type { Bus } from '@tollgate/bus'
import {
  backendUrl,
  type RuntimeSettings,
  sandboxJudgeSettings,
  sandboxTry,
  searchJudgeSettings,
  searchTry,
  toolSettings,
} from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { operatorOnly } from '../auth/authenticate.ts'
import type { Identity } from '../auth/identity.ts'
import { type RequestEnd, requestEnds } from '../conversation/request-end.ts'
import type { GatewaySettings } from '../settings.ts'
import { catalogue, settingKeys } from '../tool-settings/catalogue.ts'
import type { RuntimeToolSettings } from '../tool-settings/runtime.ts'
import { Invalid } from '../validation.ts'

export interface ToolSettingNeeds {
  bus: Bus
  settings: GatewaySettings
  runtime: Pick<RuntimeToolSettings, 'change'>
}

const item = z.strictObject({
  key: z.string(),
  service: z.string(),
  type: z.string(),
  value: z.union([z.string(), z.number(), z.boolean()]).nullable(),
  description: z.string(),
})

const clearable = <T extends Record<string, z.ZodType>>(values: T) =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, value.nullish()])) as {
    [K in keyof T]: z.ZodOptional<z.ZodNullable<T[K]>>
  }
const changes = z.strictObject(clearable(toolSettings), {
  error: ({ code, keys }) =>
    code === 'unrecognized_keys'
      ? `${(keys ?? []).join(', ')}: cannot be changed while the gateway runs; what can is ${settingKeys.join(', ')}`
      : undefined,
})
type Changes = z.output<typeof changes>

const tags = ['tool settings']
const ANSWER_MS = 5_000
const TRY_MS = 25_000

/** `/tool-settings`: how the built-in tools behave, for everyone to read, and for the operator to change (CFG-50, CFG-51). */
export const toolSettingRoutes =
  ({ bus, settings, runtime }: ToolSettingNeeds, cut: AbortSignal): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    const endOf = requestEnds(cut)
    const response = { 200: z.array(item) }

    app.get(
      '/tool-settings',
      { schema: { tags, summary: 'List the settings of the built-in tools', response } },
      async ({ identity }) => shownTo(identity, settings),
    )
    app.patch(
      '/tool-settings',
      {
        schema: {
          tags,
          summary: 'Change settings of the built-in tools',
          description:
            'All of them or none, in force on every replica within 30 s. What is left out stays; null takes back what was set here, and the config file or the environment is in force again.',
          body: changes,
          response,
        },
        onRequest: operatorOnly,
      },
      async ({ body, identity }) => {
        await refuseUnfit(body)
        await runtime.change(body)
        return shownTo(identity, settings)
      },
    )
    app.post(
      '/tool-settings/:service/test',
      {
        schema: {
          tags,
          summary: 'Try an address of a backend',
          description: 'Whether what is there would serve as `web_search_url` or `sandbox_url`. Nothing is changed.',
          params: z.object({ service: z.enum(['web_search', 'sandbox']) }),
          body: z.strictObject({ url: backendUrl }),
          response: { 200: z.strictObject({ ok: z.boolean(), reason: z.string().nullable() }) },
        },
        onRequest: operatorOnly,
      },
      async ({ params: { service }, body }, reply) => {
        const end = endOf(reply, TRY_MS)
        return tryAt(service, body.url, end).finally(end.done)
      },
    )
    done()

    function tryAt(service: 'web_search' | 'sandbox', url: string, { deadline, signal }: RequestEnd) {
      return bus.call(service === 'sandbox' ? sandboxTry : searchTry, { url }, { deadline, signal })
    }

    /** What only the service that acts on a setting can know: a value that it would not heed is refused here (S-32). */
    async function refuseUnfit(wanted: Changes): Promise<void> {
      const given = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value != null)) as RuntimeSettings
      const deadline = Date.now() + ANSWER_MS
      const judges = [
        {
          judge: searchJudgeSettings,
          of: ['web_search_default_tool', 'web_fetch_default_tool', 'web_search_provider'],
        },
        { judge: sandboxJudgeSettings, of: ['sandbox_url'] },
      ].filter(({ of }) => of.some((key) => Object.hasOwn(given, key)))
      const answers = await Promise.all(judges.map(({ judge }) => bus.call(judge, given, { deadline })))
      const problems = answers.flatMap((answer) => answer.problems)
      if (problems.length > 0)
        throw new Invalid(problems.map(({ key, why }) => ({ loc: ['body', key], msg: why, type: 'value_error' })))
    }
  }

function shownTo({ kind }: Pick<Identity, 'kind'>, settings: GatewaySettings): z.input<typeof item>[] {
  return settingKeys.flatMap((key) => {
    const { service, type, description, member, operatorOnly: hidden } = catalogue[key]
    if (hidden && kind !== 'master') return []
    return [
      { key, service, type, value: (settings[member] as string | number | boolean | undefined) ?? null, description },
    ]
  })
}
