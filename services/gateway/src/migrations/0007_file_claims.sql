-- Who copies a file whose id a provider chose, so that answers that name it at once do so one after the other (FI-23).

create table gateway.file_claims (
  id text primary key,
  claimant uuid not null,
  -- by then the copy was made or given up; a later one is of a gateway that died
  ends_at timestamptz not null
);
