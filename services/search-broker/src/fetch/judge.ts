import type { DomainPolicy } from '@tollgate/contracts'
import { judgeUnresolved, permitsHost } from '@tollgate/http'

export type Judged = { ok: true; url: string } | { ok: false; why: 'url_disallowed' | 'domain_disallowed' }

/**
 * Whether a provider may be sent to an address, or what it brought from there be used (F-40). The address is handed on as
 * it was understood here, so that no second parser can see another host in it.
 */
export function judgeAddress(raw: string, policy: DomainPolicy): Judged {
  const judged = judgeUnresolved(raw)
  if (!judged.ok) return { ok: false, why: 'url_disallowed' }
  return permitsHost(policy, judged.host) ? { ok: true, url: judged.url.href } : { ok: false, why: 'domain_disallowed' }
}
