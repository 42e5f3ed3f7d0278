-- The ledger's tables. Times are milliseconds since 1970 by the database's clock;
-- 0 is "not yet". A shard comes first in every primary key, and no index begins
-- with a time. Every statement may be run again: a migration that was cut short
-- goes on where it stopped. Text is compared by bytes, whatever the database's
-- collation is.

CREATE TABLE IF NOT EXISTS semel_operation (
  -- What stays as it was accepted (until it is stripped) comes first: so the log of
  -- a change holds little more than the change.
  created_at       bigint   NOT NULL,
  id_time          bigint,                -- the time in a UUIDv7, else NULL
  shard            smallint NOT NULL,
  account          text COLLATE "C" NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  operation_id     text COLLATE "C" NOT NULL,
  as_sent          text     NOT NULL,
  fingerprint      text     NOT NULL,
  schema_version   text     NOT NULL,
  params           bytea,
  request          bytea,

  updated_at       bigint   NOT NULL,
  expires_at       bigint   NOT NULL DEFAULT 0,
  due_at           bigint,                -- as in semel_work; NULL: no work
  revision         bigint   NOT NULL,
  token            bigint   NOT NULL,
  cleared_token    bigint   NOT NULL DEFAULT 0,
  attempts         bigint   NOT NULL,
  executions       bigint   NOT NULL,
  progress         double precision,      -- NULL: none was told
  acknowledged     boolean  NOT NULL DEFAULT false,
  contradicted     boolean  NOT NULL DEFAULT false,
  expired          boolean  NOT NULL DEFAULT false,
  state            text     NOT NULL,
  filed            text COLLATE "C",      -- the state, if it is one that people look for
  owner            text     NOT NULL,
  progress_note    text     NOT NULL DEFAULT '',
  failure_code     text,                  -- NULL: no failure
  failure_message  text     NOT NULL DEFAULT '',
  result           bytea,

  -- The latest execution; NULL: none. The next claim moves it to semel_execution.
  run_token         bigint,
  run_claimed_at    bigint,
  run_ends_at       bigint,               -- of its lease
  run_begun_at      bigint,
  run_ended_at      bigint,
  run_late_at       bigint,
  run_worker        text,
  run_contract      text,                 -- in semel_contract
  run_step          text,
  run_outcome       text,
  run_late_outcome  text,
  run_evidence      bytea,
  run_late_evidence bytea,
  PRIMARY KEY (shard, operation_id, account, kind)
);

-- No index holds a column that an ordinary life changes (state, token, due_at,
-- expires_at): so claims and endings rewrite the row where it is, and no index.

-- Lists, newest first: of one account, of all, and of the states in filed (failed,
-- needs_reconciliation, abandoned).
CREATE INDEX IF NOT EXISTS semel_operation_account ON semel_operation
  (shard, account, created_at, kind, operation_id) WHERE NOT expired;
CREATE INDEX IF NOT EXISTS semel_operation_created ON semel_operation
  (shard, created_at, account, kind, operation_id) WHERE NOT expired;
CREATE INDEX IF NOT EXISTS semel_operation_filed ON semel_operation
  (shard, filed, created_at, account, kind, operation_id) WHERE filed IS NOT NULL AND NOT expired;

-- What may be deleted once the horizon has passed it.
CREATE INDEX IF NOT EXISTS semel_operation_stripped ON semel_operation
  (shard, kind, id_time) WHERE expired AND id_time IS NOT NULL AND id_time <= created_at;

-- The pending record: there is one while the operation is accepted or processing.
-- The end of a lease is a due time too. lane is "shard/kind/account" if the work
-- was due when it was put here, and else "shard/kind/", until a claim finds it due:
-- so the lanes of a kind are exactly the accounts that have something to do, and
-- what is not due yet is in one place, in the order of time. (One column, and not
-- these three: a look-up by key must never be planned through this index.)
CREATE TABLE IF NOT EXISTS semel_work (
  due_at           bigint   NOT NULL,
  token            bigint   NOT NULL,     -- that of the operation
  shard            smallint NOT NULL,
  account          text COLLATE "C" NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  operation_id     text COLLATE "C" NOT NULL,
  lane             text COLLATE "C" NOT NULL,
  PRIMARY KEY (shard, account, operation_id, kind)
);
CREATE INDEX IF NOT EXISTS semel_work_lane ON semel_work (lane, due_at);

-- When a settled operation may be stripped.
CREATE TABLE IF NOT EXISTS semel_expiry (
  expires_at       bigint   NOT NULL,
  shard            smallint NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  account          text COLLATE "C" NOT NULL,
  operation_id     text COLLATE "C" NOT NULL,
  PRIMARY KEY (shard, kind, expires_at, account, operation_id)
);

-- Executions before the latest one.
CREATE TABLE IF NOT EXISTS semel_execution (
  token            bigint   NOT NULL,
  claimed_at       bigint   NOT NULL,
  lease_ends_at    bigint   NOT NULL,
  begun_at         bigint,
  ended_at         bigint,
  late_at          bigint,
  shard            smallint NOT NULL,
  account          text COLLATE "C" NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  operation_id     text COLLATE "C" NOT NULL,
  worker           text     NOT NULL,
  contract         text     NOT NULL,
  step             text     NOT NULL,
  outcome          text,
  late_outcome     text,
  evidence         bytea,
  late_evidence    bytea,
  PRIMARY KEY (shard, operation_id, account, kind, token)
);

-- The contracts that executions were claimed under, each once, by their digest.
CREATE TABLE IF NOT EXISTS semel_contract (
  id               text COLLATE "C" NOT NULL,
  contract         text     NOT NULL,
  PRIMARY KEY (id)
);

-- number is what the operation's count of attempts was raised to.
CREATE TABLE IF NOT EXISTS semel_attempt (
  number           bigint   NOT NULL,
  at               bigint   NOT NULL,
  shard            smallint NOT NULL,
  account          text COLLATE "C" NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  operation_id     text COLLATE "C" NOT NULL,
  attempt_id       text     NOT NULL,
  PRIMARY KEY (shard, operation_id, account, kind, number)
);

-- revision is the one that the verdict made.
CREATE TABLE IF NOT EXISTS semel_verdict (
  revision         bigint   NOT NULL,
  token            bigint   NOT NULL,
  at               bigint   NOT NULL,
  shard            smallint NOT NULL,
  account          text COLLATE "C" NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  operation_id     text COLLATE "C" NOT NULL,
  verdict          text     NOT NULL,
  then_do          text     NOT NULL,
  evidence         text     NOT NULL,
  by_whom          text     NOT NULL,
  result           bytea,
  PRIMARY KEY (shard, operation_id, account, kind, revision)
);

-- UUIDv7 of a kind at or below the horizon are no longer remembered.
CREATE TABLE IF NOT EXISTS semel_horizon (
  shard            smallint NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  horizon_at       bigint   NOT NULL,
  PRIMARY KEY (shard, kind)
);

CREATE TABLE IF NOT EXISTS semel_definition (
  kind             text COLLATE "C" NOT NULL,
  version          text COLLATE "C" NOT NULL,
  definition       bytea    NOT NULL,
  PRIMARY KEY (kind, version)
);
