import { Fault } from '@tollgate/contracts'
import type { GatewaySettings } from '../settings.ts'
import type { CodePolicy, WebPolicy } from './policy.ts'

/** Kinds of calls that protocol v1 knows (W-05). */
export const codeTools = ['code_execution', 'bash_code_execution', 'text_editor_code_execution'] as const
export type CodeTool = (typeof codeTools)[number]
/** Those that a model is offered here. */
export const servedCodeTools: readonly CodeTool[] = ['code_execution']

/** W-20, W-05, W-04: what keeps a workspace from running code here, in the order in which it is told. */
export function refuseCode(
  { enabled, tools, image }: CodePolicy,
  settings: Pick<GatewaySettings, 'sandboxSessionImage' | 'sandboxAllowedSessionImages'>,
  kind: CodeTool = 'code_execution',
): void {
  if (!enabled) throw new Fault('forbidden', 'code execution is not enabled for this workspace')
  if (tools !== null && !tools.some((tool) => servedCodeTools.includes(tool as CodeTool))) {
    throw new Fault(
      'forbidden',
      "code execution is not available to this workspace: its policy's tool list excludes every tool kind this gateway's sandbox serves.",
    )
  }
  if (tools !== null && !tools.includes(kind)) {
    throw new Fault('forbidden', `code execution by ${kind} is not among the tool kinds of this workspace's policy`)
  }
  if (image !== null && !allowedImages(settings).includes(image)) {
    throw new Fault('forbidden', "this workspace's code-execution policy pins a sandbox image that is not allowed")
  }
}

/** CFG-05 and the deployment's own, which every workspace has anyway. */
export const allowedImages = ({
  sandboxSessionImage: own,
  sandboxAllowedSessionImages: allowed,
}: Pick<GatewaySettings, 'sandboxSessionImage' | 'sandboxAllowedSessionImages'>): string[] => [
  ...new Set([...(own === undefined ? [] : [own]), ...allowed]),
]

/** W-31, W-41: the switch of every door to the web. */
export function refuseWebAccess({ enabled }: Pick<WebPolicy, 'enabled'>, what: 'web search' | 'web access'): void {
  if (!enabled) throw new Fault('forbidden', `${what} is not enabled for this workspace`)
}
