import type { Tenancy } from '@tollgate/contracts'
import type { Identity } from './identity.ts'

/** Whom a piece of work is for, as every message about it says. */
export const tenancyOf = ({ organization, workspace, user, key }: Identity, request: string): Tenancy => ({
  organization,
  workspace,
  user,
  key,
  request,
  attempt: 0,
})
