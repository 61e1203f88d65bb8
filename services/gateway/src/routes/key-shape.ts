import { z } from 'zod'
import { modelPattern } from '../auth/allowed-models.ts'
import type { KeyMembers, KeyRow } from '../auth/key-store.ts'
import { DEFAULT_USER, DEFAULT_WORKSPACE } from '../tables.ts'
import { instant, metadata, shortText } from './wire.ts'

const models = z.array(modelPattern).max(500).nullable()
const tools = z.array(shortText).max(500).nullable()

const changeable = {
  key_name: shortText.nullable(),
  expires_at: instant.nullable(),
  allowed_models: models.describe('Null: any model. Entries: instance:model, instance:* or instance:prefix*'),
  allowed_tools: tools,
  budget_exempt: z.boolean(),
  reject_user_mismatch: z.boolean().nullable(),
  metadata,
}
export const created = z.strictObject({
  user_id: shortText.default(DEFAULT_USER),
  workspace_id: shortText.default(DEFAULT_WORKSPACE),
  name: shortText.optional().describe('The same as key_name'),
  ...z.object(changeable).partial().shape,
})
export const changes = z.strictObject({ ...changeable, is_active: z.boolean() }).partial()

export const shown = z.strictObject({
  id: z.string(),
  key_name: z.string().nullable(),
  key_prefix: z.string(),
  user_id: z.string(),
  workspace_id: z.string(),
  is_active: z.boolean(),
  expires_at: z.iso.datetime().nullable(),
  allowed_models: z.array(z.string()).nullable(),
  allowed_tools: z.array(z.string()).nullable(),
  budget_exempt: z.boolean(),
  reject_user_mismatch: z.boolean().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  created_at: z.iso.datetime(),
  last_used_at: z.iso.datetime().nullable(),
})
export const shownOnce = shown.extend({ key: z.string().describe('The key itself: shown here and never again') })

type Wanted = z.output<typeof changes> & { name?: string | undefined }

/** What a body says, as the store calls it; what it does not say is left out. */
export function membersOf({ name, key_name = name, is_active, ...same }: Wanted): KeyMembers {
  const said = Object.entries({ ...same, name: key_name, active: is_active }).filter(([, value]) => value !== undefined)
  return Object.fromEntries(said)
}

export const show = (row: KeyRow): z.input<typeof shown> => ({
  id: row.id,
  key_name: row.name,
  key_prefix: row.prefix,
  user_id: row.user_id,
  workspace_id: row.workspace,
  is_active: row.active,
  expires_at: row.expires_at?.toISOString() ?? null,
  allowed_models: row.allowed_models,
  allowed_tools: row.allowed_tools,
  budget_exempt: row.budget_exempt,
  reject_user_mismatch: row.reject_user_mismatch,
  metadata: row.metadata,
  created_at: row.created_at.toISOString(),
  last_used_at: row.last_used_at?.toISOString() ?? null,
})
