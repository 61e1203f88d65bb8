-- What operators changed of the configuration's seats while the services run. What is absent is as the configuration has it.

create table gateway.seat_changes (
  seat text primary key,
  changes jsonb not null,
  updated_at timestamptz not null default now()
);
