/**
 * Who a request speaks for, as the credential alone tells it. The workspace is always the key's, never a header's.
 * With the master key, `user` is empty until the request names one and the workspace is the default one.
 */
export interface Identity {
  kind: 'key' | 'master'
  organization: string
  workspace: string
  user: string
  /** Id of the key row; `master` for the master key. */
  key: string
  /** No reservation and no refusal for want of a price (A-17, P-18). */
  budgetExempt: boolean
  /** Null: any model. The key's own list, else its user's. */
  allowedModels: string[] | null
  /** Null: as the deployment's setting says. */
  rejectUserMismatch: boolean | null
}
