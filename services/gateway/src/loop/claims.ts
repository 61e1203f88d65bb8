import { Fault } from '@tollgate/contracts'
import type { Dialect } from '../conversation/turn.ts'
import { isConfigured } from '../tools/away.ts'
import type { Capabilities } from '../tools/capabilities.ts'
import { type ContainerWish, namesOurs } from '../tools/container.ts'
import type { BuiltIn } from '../tools/tool.ts'
import type { Executor, ExecutorChoice } from './executors.ts'
import { runsNatively, type Target } from './keywords.ts'

export interface Claim {
  keyword: string
  tool: BuiltIn
  dialect: Dialect
  target: Target
  executors: ExecutorChoice
  /** The workspace's say on who runs code, if it has one (W-03). */
  pin: Executor | null
  capabilities: Capabilities
  container: ContainerWish
  codeHere: boolean
}

/** Whether a provider's keyword runs here on this attempt; false leaves it to the provider (T-15..T-18). */
export function claims(claim: Claim): boolean {
  switch (claim.tool.name) {
    case 'web_search':
      return claimsSearch(claim)
    case 'web_fetch':
      return isConfigured(claim.tool, claim.capabilities) && chosen(claim, claim.executors.web_fetch ?? 'provider')
    default:
      return claimsCode(claim)
  }
}

/** Interception outranks the header, and both need a search of the deployment's own (S-02, S-10, S-11). */
function claimsSearch(claim: Claim): boolean {
  const { tool, capabilities, executors } = claim
  if (!isConfigured(tool, capabilities)) return false
  if (!capabilities.intercept) return chosen(claim, executors.web_search ?? 'provider')
  if (executors.web_search !== 'provider') return true
  throw new Fault(
    'forbidden',
    'this deployment runs every web search on its own backend; the Otari-Web-Search header cannot hand it to the provider',
  )
}

/**
 * The workspace's pin beats the header, which beats the deployment's default; naming a sandbox of ours says where
 * the code runs as long as none of them does (C-24). Without a sandbox no pin is read.
 */
function claimsCode(claim: Claim): boolean {
  const { tool, capabilities, executors, container, codeHere } = claim
  const hasSandbox = isConfigured(tool, capabilities)
  const pin = hasSandbox ? claim.pin : null
  const header = executors.code_execution
  if (pin !== null && header !== undefined && header !== pin) {
    throw new Fault(
      'forbidden',
      "this workspace's code-execution policy decides who runs code; the Otari-Code-Execution header cannot choose otherwise",
    )
  }
  const executor = pin ?? header ?? capabilities.executor
  if (hasSandbox) return (executor === 'auto' && (codeHere || namesOurs(container))) || chosen(claim, executor)
  if (executor !== 'otari') return false
  throw new Fault(
    'invalid_request',
    'code execution was asked to run on this gateway but no sandbox is configured. Set OTARI_SANDBOX_URL on the gateway, or let the provider run it.',
  )
}

const chosen = ({ keyword, dialect, target }: Claim, executor: 'auto' | 'otari' | 'provider'): boolean =>
  executor === 'otari' || (executor === 'auto' && !runsNatively(keyword, dialect, target))
