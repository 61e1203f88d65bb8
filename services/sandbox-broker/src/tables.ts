import type { Generated } from 'kysely'

/** The schema `sandbox`, as `migrations/` makes it. */
export interface SandboxTables {
  'sandbox.containers': ContainersTable
}

interface ContainersTable {
  id: string
  organization: string
  workspace: string
  user_id: string
  provider: string
  session: string
  idle_seconds: number
  created_at: Generated<Date>
  ends_at: Date
  hard_ends_at: Date
  claim: string | null
  claim_ends_at: Date | null
}
