-- Keys of hosted sandbox providers, sealed with OTARI_SECRET_KEY (A-30).
create table sandbox.credentials (
  provider text primary key,
  sealed text not null,
  updated_at timestamptz not null default now()
);
