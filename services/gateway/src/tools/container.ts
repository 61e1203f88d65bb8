import { type containerWish, Fault, noSuchContainer } from '@tollgate/contracts'
import type { z } from 'zod'
import type { Json } from '../conversation/turn.ts'
import { Uncarried } from '../models/uncarried.ts'

/** What a request says about a sandbox that outlives it (C-02, C-07). */
export type ContainerWish =
  | { kind: 'none' }
  | { kind: 'auto'; plainWord: boolean }
  | { kind: 'id'; id: string }
  /** A form only a provider could know. */
  | { kind: 'foreign' }

export function readContainer(value: Json | undefined): ContainerWish {
  if (value === undefined || value === null) return { kind: 'none' }
  if (typeof value === 'string') {
    const id = value.trim()
    return id.toLowerCase() === 'auto' ? { kind: 'auto', plainWord: true } : { kind: 'id', id }
  }
  if (typeof value !== 'object' || Array.isArray(value)) return { kind: 'foreign' }
  if (typeof value.id === 'string') return { kind: 'id', id: value.id.trim() }
  return value.type === 'auto' ? { kind: 'auto', plainWord: false } : { kind: 'foreign' }
}

export const namesOurs = (wish: ContainerWish): boolean => wish.kind === 'id' && wish.id.startsWith('otari_cntr_')

/**
 * What code that runs here asks the broker for. An id that cannot be one of ours is gone like any other (C-13), though a
 * candidate whose provider runs the code may know it (C-27).
 */
export function keptContainer(wish: ContainerWish): z.input<typeof containerWish> | undefined {
  switch (wish.kind) {
    case 'none':
      return undefined
    case 'auto':
      return { kind: 'auto' }
    case 'id':
      if (!/^otari_cntr_[0-9a-f]{32}$/.test(wish.id)) throw passable(noSuchContainer(wish.id))
      return wish
    case 'foreign':
      throw passable(new Fault('invalid_request', 'container must be "auto" or the id of a container'))
    default:
      return wish satisfies never
  }
}

/** Such a refusal is one candidate's, which a chain passes over. */
export const passable = ({ failure, message }: Fault): Uncarried => new Uncarried(failure, message)

/** Code that runs at the provider: what only this gateway could have named would reach it as a malformed id (C-23). */
export function refuseOurContainer(wish: ContainerWish): void {
  if (!namesOurs(wish) && !(wish.kind === 'auto' && wish.plainWord)) return
  throw new Uncarried(
    'invalid_request',
    'container names a sandbox this gateway holds, and the code execution for this request runs on the provider, which cannot reach it. Drop the field, or send Otari-Code-Execution: otari to run the code here.',
  )
}
