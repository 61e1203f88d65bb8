import type { GatewayDb } from '../tables.ts'
import { intersect } from './allowed-models.ts'
import type { Identity } from './identity.ts'

/** A key as it stands, with what can change between two requests without a write: its end. */
export interface KnownKey {
  identity: Identity
  active: boolean
  expiresAt: Date | null
}

export interface KnownUser {
  id: string
  blocked: boolean
  allowedModels: string[] | null
  allowedTools: string[] | null
}

/** `question` is the same for those who may share an answer. */
export function keyLookup(db: GatewayDb): (question: string, hash: string) => Promise<KnownKey | undefined> {
  const find = db.prepare<KeyRow>(
    'gateway_key_by_hash',
    `select k.id, k.organization, k.workspace, k.user_id, k.active, k.expires_at, k.budget_exempt, k.reject_user_mismatch,
       k.allowed_models, u.allowed_models as user_models, k.allowed_tools, u.allowed_tools as user_tools
     from gateway.keys k join gateway.users u on u.organization = k.organization and u.id = k.user_id
     where k.hash = $1`,
  )
  const share = sharing<KnownKey | undefined>()
  return (question, hash) =>
    share(question, async () => {
      const [row] = await find([hash])
      if (!row) return undefined
      return {
        active: row.active,
        expiresAt: row.expires_at,
        identity: {
          kind: 'key',
          organization: row.organization,
          workspace: row.workspace,
          user: row.user_id,
          key: row.id,
          budgetExempt: row.budget_exempt,
          allowedModels: intersect(row.allowed_models, row.user_models),
          allowedTools: inBoth(row.allowed_tools, row.user_tools),
          rejectUserMismatch: row.reject_user_mismatch,
        },
      }
    })
}

interface KeyRow {
  id: string
  organization: string
  workspace: string
  user_id: string
  active: boolean
  expires_at: Date | null
  budget_exempt: boolean
  reject_user_mismatch: boolean | null
  allowed_models: string[] | null
  user_models: string[] | null
  allowed_tools: string[] | null
  user_tools: string[] | null
}

export function userLookup(
  db: GatewayDb,
): (question: string, organization: string, id: string) => Promise<KnownUser | undefined> {
  const find = db.prepare<{ blocked: boolean; allowed_models: string[] | null; allowed_tools: string[] | null }>(
    'gateway_user_by_id',
    'select blocked, allowed_models, allowed_tools from gateway.users where organization = $1 and id = $2',
  )
  const share = sharing<KnownUser | undefined>()
  return (question, organization, id) =>
    share(question, async () => {
      // Postgres has no text with a NUL in it: such a user cannot be there
      const [row] = id.includes('\0') ? [] : await find([organization, id])
      return row && { id, blocked: row.blocked, allowedModels: row.allowed_models, allowedTools: row.allowed_tools }
    })
}

/** Tools are named, so that what both lists name is simply in both. */
const inBoth = (one: string[] | null, other: string[] | null): string[] | null =>
  one === null || other === null ? (one ?? other) : one.filter((tool) => other.includes(tool))

/** Those who ask the same question at once get one answer. */
export function sharing<V>(): (question: string, ask: () => Promise<V>) => Promise<V> {
  const asking = new Map<string, Promise<V>>()
  return (question, ask) => {
    const known = asking.get(question)
    if (known) return known
    const answer = ask().finally(() => asking.delete(question))
    asking.set(question, answer)
    return answer
  }
}
