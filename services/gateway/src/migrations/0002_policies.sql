-- What a workspace may do with the tools of this gateway. Without a row the deployment's default decides (W-07, W-40);
-- null narrows nothing.

create table gateway.code_execution_policies (
  workspace text primary key references gateway.workspaces (id) on delete cascade,
  enabled boolean not null,
  max_iterations integer,
  exec_timeout_s integer,
  default_purpose_hint text,
  -- kinds of calls that may be made (W-05)
  tools text[],
  image text,
  executor text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table gateway.web_access_policies (
  workspace text primary key references gateway.workspaces (id) on delete cascade,
  enabled boolean not null,
  max_results integer,
  allowed_domains text[],
  blocked_domains text[],
  purpose_hint text,
  provider_options jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
