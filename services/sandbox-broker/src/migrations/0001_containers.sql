-- Sandboxes kept for a later request. The sandbox itself lives in its backend, which reclaims it by its own clock; a row
-- says whose it is, until when, and which request has it now.
create table sandbox.containers (
  id text primary key,
  organization text not null,
  workspace text not null,
  user_id text not null,
  provider text not null,
  session text not null,
  -- in force at the backend, which may be less than was asked
  idle_seconds integer not null check (idle_seconds > 0),
  created_at timestamptz not null default now(),
  -- the sooner of both clocks, as it stood after the last use
  ends_at timestamptz not null,
  hard_ends_at timestamptz not null,
  -- the request that has it; nobody's once the claim has ended
  claim text,
  claim_ends_at timestamptz,
  check ((claim is null) = (claim_ends_at is null))
);

create unique index containers_session on sandbox.containers (provider, session);
create index containers_end on sandbox.containers (ends_at);
