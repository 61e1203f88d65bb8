-- Versions of prices, in dollars per million units. The one in force at a moment is the latest that had begun by then
-- and was not deleted by then: a deleted price still prices the requests that began before.
create table billing.prices (
  id uuid primary key,
  kind text not null check (kind in ('model', 'search', 'fetch')),
  model_key text not null,
  input_per_million numeric not null check (input_per_million >= 0),
  output_per_million numeric not null check (output_per_million >= 0),
  cache_read_per_million numeric check (cache_read_per_million >= 0),
  cache_write_per_million numeric check (cache_write_per_million >= 0),
  effective_at timestamptz not null,
  created_at timestamptz not null default now(),
  deleted_at timestamptz
);

create unique index prices_version on billing.prices (kind, model_key, effective_at) where deleted_at is null;

-- Counts every change, so that a replica knows in one row whether its copy is still good.
create table billing.price_revision (
  one boolean primary key default true check (one),
  revision bigint not null
);

insert into billing.price_revision (revision) values (0);
