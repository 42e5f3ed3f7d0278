-- The ledger's tables. Times are milliseconds since 1970 by the store's clock;
-- 0 is "not yet". A shard comes first in every primary key, as in the other
-- stores; the indexes leave it out, since here all shards are in one file, and
-- fewer places to write to make a batch cheaper.

CREATE TABLE semel_operation (
  shard            INTEGER NOT NULL,
  account          TEXT    NOT NULL,
  kind             TEXT    NOT NULL,
  operation_id     TEXT    NOT NULL,
  state            TEXT    NOT NULL,
  as_sent          TEXT    NOT NULL,
  fingerprint      TEXT    NOT NULL,
  schema_version   TEXT    NOT NULL,
  id_time          INTEGER,          -- the time in a UUIDv7, else NULL
  attempts         INTEGER NOT NULL,
  executions       INTEGER NOT NULL,
  progress         REAL,             -- NULL: none was told
  progress_note    TEXT    NOT NULL DEFAULT '',
  acknowledged     INTEGER NOT NULL DEFAULT 0,
  contradicted     INTEGER NOT NULL DEFAULT 0,
  expired          INTEGER NOT NULL DEFAULT 0,
  revision         INTEGER NOT NULL,
  token            INTEGER NOT NULL,
  cleared_token    INTEGER NOT NULL DEFAULT 0,
  owner            TEXT    NOT NULL,
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  expires_at       INTEGER NOT NULL DEFAULT 0,
  due_at           INTEGER NOT NULL DEFAULT 0, -- of the work row; 0: there is none
  failure_code     TEXT,             -- NULL: no failure
  failure_message  TEXT    NOT NULL DEFAULT '',
  params           BLOB,
  request          BLOB,
  result           BLOB,
  PRIMARY KEY (shard, account, kind, operation_id)
);

-- Lists: of one account, and of one state. The kind is in both, so that a rare
-- kind is found as quickly as a common one; which kinds there are, semel_count says.
CREATE INDEX semel_operation_account ON semel_operation
  (account, kind, created_at, operation_id) WHERE expired = 0;
CREATE INDEX semel_operation_state ON semel_operation
  (kind, state, created_at, account, operation_id) WHERE expired = 0;
CREATE INDEX semel_operation_contradicted ON semel_operation
  (kind) WHERE contradicted = 1 AND expired = 0;

-- Purge: what can be stripped, and what can go after it.
CREATE INDEX semel_operation_expiry ON semel_operation
  (kind, expires_at) WHERE expired = 0 AND expires_at > 0;
CREATE INDEX semel_operation_stripped ON semel_operation
  (kind, id_time) WHERE expired = 1 AND id_time IS NOT NULL AND id_time <= created_at;

-- The pending record: there is one while the operation is accepted or
-- processing, and it lies where its due time says. The end of a lease is a due
-- time too.
CREATE TABLE semel_work (
  shard            INTEGER NOT NULL,
  account          TEXT    NOT NULL,
  kind             TEXT    NOT NULL,
  due_at           INTEGER NOT NULL,
  operation_id     TEXT    NOT NULL,
  PRIMARY KEY (shard, account, kind, due_at, operation_id)
) WITHOUT ROWID;

-- Whose turn it is: one row for each account and kind with pending work. due_at
-- is the earliest due time of that work, served_at the last claim from it, and
-- turn_at the later of the two: who was served goes behind everybody who was due
-- before that, so no account starves another, however much it has waiting. Within
-- one millisecond, who was served less often goes first.
CREATE TABLE semel_queue (
  shard            INTEGER NOT NULL,
  kind             TEXT    NOT NULL,
  account          TEXT    NOT NULL,
  due_at           INTEGER NOT NULL,
  served_at        INTEGER NOT NULL,
  turn_at          INTEGER NOT NULL,
  served           INTEGER NOT NULL,
  PRIMARY KEY (shard, kind, account)
) WITHOUT ROWID;
CREATE INDEX semel_queue_turn ON semel_queue (kind, turn_at, served, shard, account);

CREATE TABLE semel_execution (
  shard            INTEGER NOT NULL,
  account          TEXT    NOT NULL,
  kind             TEXT    NOT NULL,
  operation_id     TEXT    NOT NULL,
  token            INTEGER NOT NULL,
  worker           TEXT    NOT NULL,
  contract         TEXT    NOT NULL,
  step             TEXT    NOT NULL DEFAULT '',
  claimed_at       INTEGER NOT NULL,
  lease_ends_at    INTEGER NOT NULL,
  begun_at         INTEGER NOT NULL DEFAULT 0,
  ended_at         INTEGER NOT NULL DEFAULT 0,
  outcome          TEXT    NOT NULL DEFAULT '',
  evidence         BLOB,
  late_outcome     TEXT    NOT NULL DEFAULT '',
  late_evidence    BLOB,
  late_at          INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (shard, account, kind, operation_id, token)
) WITHOUT ROWID;

-- number is what the operation's count of attempts was raised to.
CREATE TABLE semel_attempt (
  shard            INTEGER NOT NULL,
  account          TEXT    NOT NULL,
  kind             TEXT    NOT NULL,
  operation_id     TEXT    NOT NULL,
  number           INTEGER NOT NULL,
  attempt_id       TEXT    NOT NULL,
  at               INTEGER NOT NULL,
  PRIMARY KEY (shard, account, kind, operation_id, number)
) WITHOUT ROWID;

-- revision is the one that the verdict made.
CREATE TABLE semel_verdict (
  shard            INTEGER NOT NULL,
  account          TEXT    NOT NULL,
  kind             TEXT    NOT NULL,
  operation_id     TEXT    NOT NULL,
  revision         INTEGER NOT NULL,
  verdict          TEXT    NOT NULL,
  then_do          TEXT    NOT NULL,
  evidence         TEXT    NOT NULL,
  by_whom          TEXT    NOT NULL,
  result           BLOB,
  token            INTEGER NOT NULL,
  at               INTEGER NOT NULL,
  PRIMARY KEY (shard, account, kind, operation_id, revision)
) WITHOUT ROWID;

-- UUIDv7 of a kind at or below the horizon are no longer remembered.
CREATE TABLE semel_horizon (
  shard            INTEGER NOT NULL,
  kind             TEXT    NOT NULL,
  horizon_at       INTEGER NOT NULL,
  PRIMARY KEY (shard, kind)
) WITHOUT ROWID;

-- How many operations of a kind are in a state, stripped ones left out: counting
-- them anew for every look at the metrics would take longer and longer.
CREATE TABLE semel_count (
  kind             TEXT    NOT NULL,
  state            TEXT    NOT NULL,
  operations       INTEGER NOT NULL,
  PRIMARY KEY (kind, state)
) WITHOUT ROWID;

CREATE TABLE semel_definition (
  kind             TEXT    NOT NULL,
  version          TEXT    NOT NULL,
  definition       BLOB    NOT NULL,
  PRIMARY KEY (kind, version)
);
