-- Answers of the Responses API that a client may ask for again and go on from; never a key. Their JSON is text: as jsonb
-- its members would change their order, and with it what a provider's prompt cache has seen.

create table gateway.responses (
  id text primary key,
  organization text not null,
  workspace text not null,
  user_id text not null,
  -- what this one went on from; no reference, since either may be deleted alone
  previous_id text,
  -- the answer as its client got it
  body text not null,
  -- the items that were sent with the request, each with an id
  input text not null,
  -- what followed them before the model's eyes: its own words, calls that ran here, their results
  replay text not null,
  item_ids text[] not null,
  bytes integer not null,
  created_at timestamptz not null default now(),
  -- when a conversation last went through it
  used_at timestamptz not null default now(),
  foreign key (organization, workspace) references gateway.workspaces (organization, id) on delete cascade
);

create index responses_by_owner on gateway.responses (organization, workspace, user_id, created_at, id);
create index responses_by_use on gateway.responses (used_at);
create index responses_by_item on gateway.responses using gin (item_ids);
