-- MCP servers that requests of a workspace may name. The token is encrypted (OTARI_SECRET_KEY).

create table gateway.mcp_servers (
  id text primary key,
  workspace text not null references gateway.workspaces (id) on delete cascade,
  name text not null,
  url text not null,
  sealed_token text,
  purpose_hint text,
  -- null: all of them
  allowed_tools text[],
  enabled boolean not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (workspace, name)
);
