-- What operators set while the services run. A key that is absent has the value of the config file or the environment.

create table gateway.tool_settings (
  key text primary key,
  value jsonb not null,
  updated_at timestamptz not null default now()
);
