import { z } from 'zod'

/** `instance:model`, `instance:*` or `instance:prefix*`. */
export const modelPattern = z
  .string()
  .max(256)
  .regex(/^[A-Za-z0-9][\w.-]*:[^\s*\p{Cc}\p{Cs}]*\*?$/u, 'must be instance:model, instance:* or instance:prefix*')
  .refine((pattern) => !pattern.endsWith(':'), 'must name a model, or end with *')

/** Whether a list lets a model through; null is any model, an empty list none. */
export const permits = (allowed: readonly string[] | null, model: string): boolean =>
  allowed === null || allowed.some((pattern) => covers(pattern, model))

/** A key's list may not reach further than its user's. */
export const isBroader = (list: readonly string[], limit: readonly string[] | null): boolean =>
  limit !== null && list.some((pattern) => !limit.some((wider) => covers(wider, pattern)))

/** What both lists let through: a user's list that was narrowed later still holds for keys made before. */
export function intersect(one: readonly string[] | null, other: readonly string[] | null): string[] | null {
  if (one === null) return other === null ? null : [...other]
  if (other === null) return [...one]
  const within = (patterns: readonly string[], limits: readonly string[]) =>
    patterns.filter((pattern) => limits.some((limit) => covers(limit, pattern)))
  return [...new Set([...within(one, other), ...within(other, one)])]
}

/** True when everything the narrower names, a model or a pattern, is named by the wider too. */
function covers(wider: string, narrower: string): boolean {
  if (!wider.endsWith('*')) return wider === narrower
  const prefix = wider.slice(0, -1)
  return narrower.startsWith(prefix)
}
