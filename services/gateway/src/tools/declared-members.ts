import { Fault } from '@tollgate/contracts'
import type { JsonObject } from '../conversation/turn.ts'
import type { Declaration } from './tool.ts'

const MOST_HINT_CHARACTERS = 2_048

/** A body whose numbers are strings of their own spelling. Costs a second parse, so only a body that needs it gets one. */
export function spellNumbers(json: string): unknown {
  return JSON.parse(
    json.replace(/"(?:[^"\\]+|\\.)*"|-?\d[\d.eE+-]*/g, (token) => (token.startsWith('"') ? token : `"${token}"`)),
  )
}

/** S-19: only a plain run of digits counts; `5.0`, `1e1`, `"3"` and `true` are mistakes of the caller. */
export function readMaxUses({ entry, spelled }: Declaration, tool: string): number | undefined {
  if (!Object.hasOwn(entry, 'max_uses')) return undefined
  const { max_uses: value } = entry
  const wellSpelled = typeof value === 'number' && /^\d+$/.test(String(spelled.max_uses))
  if (!wellSpelled) throw new Fault('invalid_request', `${tool} max_uses must be a non-negative integer`)
  return value
}

export function readMaxResults(entry: JsonObject, tool: string): number | undefined {
  const { max_results: value } = entry
  if (value === undefined) return undefined
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value
  throw new Fault('invalid_request', `${tool} max_results must be a positive integer`)
}

/** T-30: at most 2048 characters. A blank hint counts as none. */
export function readHint(entry: JsonObject, tool: string): string | undefined {
  const { purpose_hint: value } = entry
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' && value.length <= MOST_HINT_CHARACTERS) return value.trim() || undefined
  throw new Fault(
    'invalid_request',
    `${tool} purpose_hint must be a string of at most ${MOST_HINT_CHARACTERS} characters`,
  )
}
