-- Requests under way: the row is gone once its request is settled or given back. Estimates are micro-dollars.
create table billing.holds (
  id text primary key,
  organization text not null,
  workspace text not null,
  key_id text not null,
  user_id text not null,
  endpoint text not null,
  model text not null,
  provider text not null,
  estimate bigint not null check (estimate >= 0),
  budget_exempt boolean not null,
  created_at timestamptz not null default now(),
  ends_at timestamptz not null
);

create index holds_end on billing.holds (ends_at);

-- Calls that ran, as they were reported; what they cost stands in the request's usage row.
create table billing.tool_lines (
  id text primary key,
  request text not null,
  organization text not null,
  workspace text not null,
  tool text not null,
  label text not null,
  price_keys jsonb not null,
  outcome text not null check (outcome in ('ok', 'error')),
  reported_cost numeric check (reported_cost >= 0),
  at timestamptz not null
);

create index tool_lines_request on billing.tool_lines (request);

-- One row a request, its id, and one for each attempt that another stood in for. Costs are micro-dollars.
create table billing.usage (
  id text primary key,
  request text not null,
  organization text not null,
  workspace text not null,
  key_id text not null,
  user_id text not null,
  endpoint text not null,
  model text not null,
  provider text not null,
  began_at timestamptz not null,
  settled_at timestamptz not null,
  duration_ms double precision,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  billing_meters jsonb not null,
  pricing_breakdown jsonb not null,
  cost bigint check (cost >= 0),
  counts_toward_budget boolean not null,
  status text not null check (status in ('success', 'error', 'cancelled', 'absorbed')),
  error text,
  settled_by text not null check (settled_by in ('gateway', 'sweep'))
);

create index usage_newest on billing.usage (settled_at desc, id desc);
create index usage_of_workspace on billing.usage (workspace, settled_at desc, id desc);
create index usage_of_attempts on billing.usage (request) where id <> request;
