import { Fault } from '@tollgate/contracts'
import type { Identity } from '../auth/identity.ts'
import type { GatewayDb } from '../tables.ts'

/**
 * Refuses a workspace that the caller does not see as one that is not there: a key sees its own, the operator all.
 * To change something there is the operator's alone.
 */
export async function refuseUnseen(
  { kysely }: GatewayDb,
  { kind, workspace }: Pick<Identity, 'kind' | 'workspace'>,
  id: string,
  does: 'read' | 'write',
): Promise<void> {
  const seen = kind === 'master' ? await exists() : workspace === id
  if (!seen) throw new Fault('not_found', `Workspace '${id}' not found`)
  if (does === 'write' && kind !== 'master') {
    throw new Fault('forbidden', 'Changing the settings of a workspace requires the master key')
  }

  async function exists(): Promise<boolean> {
    const named = kysely.selectFrom('gateway.workspaces').where('id', '=', id)
    return (await named.select('id').executeTakeFirst()) !== undefined
  }
}
