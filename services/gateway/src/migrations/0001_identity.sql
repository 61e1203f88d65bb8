-- Organizations own workspaces; users and keys stand in an organization, a key in one workspace of it (A-03, A-13).

create table gateway.organizations (
  id text primary key,
  name text not null,
  created_at timestamptz not null default now()
);

create table gateway.workspaces (
  id text primary key,
  organization text not null references gateway.organizations (id),
  name text not null,
  created_at timestamptz not null default now(),
  unique (organization, id)
);

create table gateway.users (
  organization text not null references gateway.organizations (id),
  id text not null,
  alias text,
  blocked boolean not null default false,
  -- null: any model; an empty list: none (A-07)
  allowed_models text[],
  -- null: no extra grant (A-08)
  allowed_tools text[],
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  primary key (organization, id)
);

create table gateway.keys (
  id text primary key,
  organization text not null,
  workspace text not null,
  user_id text not null,
  name text,
  -- SHA-256 of the key, base64: the key itself is nowhere (A-02)
  hash text not null unique,
  prefix text not null,
  active boolean not null default true,
  expires_at timestamptz,
  allowed_models text[],
  allowed_tools text[],
  budget_exempt boolean not null default false,
  reject_user_mismatch boolean,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  foreign key (organization, workspace) references gateway.workspaces (organization, id),
  foreign key (organization, user_id) references gateway.users (organization, id)
);

create index keys_by_workspace on gateway.keys (organization, workspace);
create index keys_by_user on gateway.keys (organization, user_id);

-- what the deployment knows about itself, in one row
create table gateway.deployment (
  one boolean primary key default true check (one),
  master_key_hash text,
  first_key_made boolean not null default false,
  created_at timestamptz not null default now()
);

insert into gateway.organizations (id, name) values ('default', 'Default');
insert into gateway.workspaces (id, organization, name) values ('default', 'default', 'Default');
insert into gateway.users (organization, id) values ('default', 'default');
insert into gateway.deployment default values;
