import { randomBytes } from 'node:crypto'
import type { HeldContainer } from '@tollgate/contracts'
import type { Raw } from '../../conversation/events.ts'
import type { JsonObject } from '../../conversation/turn.ts'

interface Head {
  id: string | undefined
  raw?: Raw | undefined
}

/**
 * What a message begins with: one id, and the model as the client wrote it. The id is the upstream's, where that
 * has ids of this dialect's form.
 */
export function headOf({ id, raw }: Head, model: string): JsonObject {
  const own = raw?.dialect === 'messages' ? raw.value : undefined
  const kept = id !== undefined && (own !== undefined || id.startsWith('msg_'))
  return {
    ...{ id: '', type: 'message', role: 'assistant', model, content: [] },
    ...own,
    id: kept ? id : `msg_${randomBytes(12).toString('hex')}`,
    model,
    content: [],
  }
}

/** C-04 */
export const containerMember = (held: HeldContainer | undefined): JsonObject =>
  held === undefined ? {} : { container: { id: held.id, expires_at: held.expiresAt } }
