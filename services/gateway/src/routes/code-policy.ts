import { executor, Fault } from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { allowedImages, codeTools, servedCodeTools } from '../policies/refusals.ts'
import type { GatewaySettings } from '../settings.ts'
import { isConfigured } from '../tools/away.ts'
import { codeExecution } from '../tools/code-execution.ts'
import { hint } from './wire.ts'
import { type PolicyNeeds, workspacePolicyRoutes } from './workspace-policy.ts'

/** W-02: over the deployment's own limits it would narrow nothing. */
const body = z.strictObject({
  enabled: z.boolean().describe('False refuses code execution to the workspace'),
  max_iterations: z.int().min(1).max(25).nullable().default(null).describe('Most rounds of a request that runs code'),
  exec_timeout_s: z.int().min(1).max(60).nullable().default(null).describe('Most seconds of one run'),
  default_purpose_hint: hint.nullable().default(null).describe('Where a declaration has no hint of its own'),
  tools: z.array(z.enum(codeTools)).max(10).nullable().default(null).describe('Kinds of calls that may be made'),
  image: z.string().min(1).max(512).nullable().default(null).describe('One of allowed_images'),
  executor: executor.nullable().default(null).describe('Who runs a provider’s code tool'),
})

const shape = {
  max_iterations: z.int().nullable(),
  exec_timeout_s: z.int().nullable(),
  default_purpose_hint: z.string().nullable(),
  tools: z.array(z.string()).nullable(),
  image: z.string().nullable(),
  executor: z.string().nullable(),
  sandbox_configured: z.boolean(),
  available_tools: z.array(z.string()),
  allowed_images: z.array(z.string()),
}

/** `/workspaces/{id}/code-execution-policy`: what a workspace may do with code (W-01). */
export const codePolicyRoutes = ({ settings, capabilities, ...needs }: PolicyNeeds): FastifyPluginCallbackZod =>
  workspacePolicyRoutes(needs, {
    table: 'gateway.code_execution_policies',
    path: 'code-execution-policy',
    name: 'code-execution policy',
    body,
    shape,
    enabledByDefault: () => settings.codeExecutionWorkspaceDefault,
    columns(wanted) {
      refuseUnserved(wanted, settings)
      return wanted
    },
    show: async (row) => ({
      max_iterations: row?.max_iterations ?? null,
      exec_timeout_s: row?.exec_timeout_s ?? null,
      default_purpose_hint: row?.default_purpose_hint ?? null,
      tools: row?.tools ?? null,
      image: row?.image ?? null,
      executor: row?.executor ?? null,
      sandbox_configured: isConfigured(codeExecution, await capabilities()),
      available_tools: [...servedCodeTools],
      allowed_images: allowedImages(settings),
    }),
  })

/** W-04, W-05: what would refuse every request of the workspace is refused here. */
function refuseUnserved({ tools, image }: z.output<typeof body>, settings: GatewaySettings): void {
  if (tools !== null && !tools.some((tool) => servedCodeTools.includes(tool))) {
    throw new Fault(
      'invalid_request',
      `A code-execution tool list must name at least one tool this deployment serves (${servedCodeTools.join(', ')}). Use enabled=false to refuse the workspace instead.`,
    )
  }
  const images = allowedImages(settings)
  if (image === null || images.includes(image)) return
  const which = images.length === 0 ? 'this deployment allows none' : `allowed are: ${images.join(', ')}`
  throw new Fault('invalid_request', `image is not one that a workspace may pin; ${which}`)
}
