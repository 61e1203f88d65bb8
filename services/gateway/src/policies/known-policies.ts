import type { Bus } from '@tollgate/bus'
import { changedPolicies } from '@tollgate/contracts'
import { sharing } from '../auth/lookups.ts'
import { boundedCache } from '../bounded-cache.ts'
import type { GatewaySettings } from '../settings.ts'
import type { GatewayDb, Tables } from '../tables.ts'
import { codePolicyOf, defaultPolicies, type Policies, type WebRow, webPolicyOf } from './policy.ts'

/** A change reaches every replica by `changed.policies`, and at the latest after this long. */
const FRESH_MS = 15_000
const MOST = 10_000

export interface KnownPolicies {
  /** What holds for a workspace. Without a database round trip for one that was asked about in the last 15 s. */
  of(workspace: string): Promise<Policies>
  /** A policy of the workspace was written: tells this process and every other. */
  changed(workspace: string): void
  close(): void
}

type Stored = Partial<Policies>

export function openPolicies({
  db,
  bus,
  settings,
}: {
  db: GatewayDb
  bus: Bus
  settings: GatewaySettings
}): KnownPolicies {
  const known = boundedCache<Stored>(MOST, FRESH_MS)
  const lookUp = policyLookup(db)
  let generation = 0
  let open = true

  const forget = () => {
    generation += 1
    known.clear()
  }
  bus.listen(changedPolicies, () => {
    if (open) forget()
  })

  /** What was read while something was written may be of before: it is used once and not kept. */
  async function read(workspace: string): Promise<Stored> {
    const before = generation
    const stored = await lookUp(`${before} ${workspace}`, workspace)
    if (generation === before) known.set(workspace, stored)
    return stored
  }

  return {
    async of(workspace) {
      const stored = known.get(workspace) ?? (await read(workspace))
      return { ...defaultPolicies(settings), ...stored }
    },
    changed(workspace) {
      forget()
      bus.announce(changedPolicies, { workspace })
    },
    close() {
      open = false
    },
  }
}

interface PolicyRows {
  code: Tables['gateway.code_execution_policies'] | null
  web: WebRow | null
}

/** Both policies of a workspace by one statement. */
function policyLookup(db: GatewayDb): (question: string, workspace: string) => Promise<Stored> {
  const find = db.prepare<PolicyRows>(
    'gateway_policies_of_workspace',
    `select to_jsonb(c) as code, to_jsonb(w) as web
     from (select $1::text as id) asked
     left join gateway.code_execution_policies c on c.workspace = asked.id
     left join gateway.web_access_policies w on w.workspace = asked.id`,
  )
  const share = sharing<Stored>()
  return (question, workspace) =>
    share(question, async () => {
      const [row] = await find([workspace])
      return {
        ...(row?.code && { code: codePolicyOf(row.code) }),
        ...(row?.web && { web: webPolicyOf(row.web) }),
      }
    })
}
