/** Who a request was authenticated as (A-01..A-07). Its workspace is always the key's own, never a header's (W-06). */
export interface Identity {
  kind: 'key' | 'master'
  organization: string
  workspace: string
  user: string
  /** The key's id, never its secret. */
  key: string
  /** No reservation against budgets and no refusal for want of a price. */
  budgetExempt: boolean
  /** Null: every model. Entries are `instance:model`, `instance:*` or `instance:prefix*`. */
  allowedModels: string[] | null
  /** Search tools that a direct search may name (D-09); null names none, and restricts nothing. */
  allowedTools: string[] | null
  /** The key's own say on naming another user; null leaves it to the deployment's setting. */
  rejectUserMismatch: boolean | null
}
