import { Fault } from '@tollgate/contracts'
import type { GatewaySettings } from '../settings.ts'

/** W-40: without a policy of its own a workspace has the web access that the deployment gives every one. */
export function refuseWebAccess(settings: Pick<GatewaySettings, 'webSearchWorkspaceDefault'>, what: string): void {
  if (!settings.webSearchWorkspaceDefault) throw new Fault('forbidden', `${what} is not enabled for this workspace`)
}
