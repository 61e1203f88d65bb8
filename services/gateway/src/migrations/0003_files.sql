-- Who owns a stored file and what it is called; its bytes lie in the file store under the same id (FI-07).

create table gateway.files (
  id text primary key,
  organization text not null references gateway.organizations (id),
  workspace text not null,
  -- empty: the operator's
  user_id text not null,
  filename text not null,
  media_type text not null,
  bytes bigint not null,
  purpose text not null,
  created_at timestamptz not null,
  -- null: until it is deleted, or the deployment keeps files no longer (FI-08)
  expires_at timestamptz,
  foreign key (organization, workspace) references gateway.workspaces (organization, id)
);

create index files_by_owner on gateway.files (organization, workspace, user_id, created_at, id);
create index files_by_organization on gateway.files (organization, created_at, id);
create index files_by_age on gateway.files (created_at);
create index files_by_end on gateway.files (expires_at) where expires_at is not null;
