import type { Database } from '@tollgate/db'
import type { ColumnType, Generated, JSONColumnType } from 'kysely'
import type { JsonObject } from './conversation/turn.ts'

type Metadata = JSONColumnType<Record<string, unknown>, Record<string, unknown> | undefined, Record<string, unknown>>

export interface Tables {
  'gateway.workspaces': { id: string; organization: string; name: string; created_at: Generated<Date> }
  'gateway.users': {
    organization: string
    id: string
    alias: string | null
    blocked: Generated<boolean>
    allowed_models: string[] | null
    allowed_tools: string[] | null
    metadata: Metadata
    created_at: Generated<Date>
  }
  'gateway.keys': {
    id: string
    organization: string
    workspace: string
    user_id: string
    name: string | null
    hash: string
    prefix: string
    active: Generated<boolean>
    expires_at: Date | null
    allowed_models: string[] | null
    allowed_tools: string[] | null
    budget_exempt: Generated<boolean>
    reject_user_mismatch: boolean | null
    metadata: Metadata
    created_at: Generated<Date>
    last_used_at: Date | null
  }
  'gateway.code_execution_policies': {
    workspace: string
    enabled: boolean
    max_iterations: number | null
    exec_timeout_s: number | null
    default_purpose_hint: string | null
    tools: string[] | null
    image: string | null
    executor: 'auto' | 'otari' | 'provider' | null
    created_at: Generated<Date>
    updated_at: Generated<Date>
  }
  'gateway.web_access_policies': {
    workspace: string
    enabled: boolean
    max_results: number | null
    allowed_domains: string[] | null
    blocked_domains: string[] | null
    purpose_hint: string | null
    provider_options: JSONColumnType<JsonObject> | null
    created_at: Generated<Date>
    updated_at: Generated<Date>
  }
  'gateway.mcp_servers': {
    id: string
    workspace: string
    name: string
    url: string
    sealed_token: string | null
    purpose_hint: string | null
    allowed_tools: string[] | null
    enabled: boolean
    created_at: Generated<Date>
    updated_at: Generated<Date>
  }
  'gateway.tool_settings': { key: string; value: ColumnType<unknown, string, string>; updated_at: Generated<Date> }
  'gateway.seat_changes': { seat: string; changes: ColumnType<unknown, string, string>; updated_at: Generated<Date> }
  'gateway.files': {
    id: string
    organization: string
    workspace: string
    user_id: string
    filename: string
    media_type: string
    bytes: bigint
    purpose: string
    created_at: Date
    expires_at: Date | null
  }
  'gateway.file_claims': { id: string; claimant: string; ends_at: Date }
  'gateway.responses': {
    id: string
    organization: string
    workspace: string
    user_id: string
    previous_id: string | null
    body: string
    input: string
    replay: string
    item_ids: string[]
    bytes: number
    created_at: Generated<Date>
    used_at: Generated<Date>
  }
  'gateway.deployment': { one: Generated<boolean>; master_key_hash: string | null; first_key_made: Generated<boolean> }
}

export type GatewayDb = Database<Tables>

/** Where everything stands that no other place was named for. */
export const DEFAULT_ORGANIZATION = 'default'
export const DEFAULT_WORKSPACE = 'default'
export const DEFAULT_USER = 'default'
