// The tables. Times are milliseconds since the epoch. Triggers keep dependent rows and counts up to date.
import { STORE_SCHEMA } from './partition.ts'

/** Files of earlier versions are refused. */
export const SCHEMA_VERSION = 6

export const SCHEMA = `${STORE_SCHEMA}
CREATE TABLE tallies (name TEXT PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO tallies VALUES ('idle', 0, 0), ('sessions', 0, 0), ('ended', 0, 0), ('pending', 0, 0), ('tasks', 0, 0);
CREATE TABLE probe (id INTEGER PRIMARY KEY, filler BLOB);

CREATE TABLE sessions (
  id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, holder TEXT NOT NULL, opening TEXT NOT NULL, home TEXT NOT NULL,
  version INTEGER NOT NULL, revision TEXT NOT NULL, client TEXT NOT NULL, level TEXT NOT NULL,
  watching INTEGER NOT NULL, watched_bytes INTEGER NOT NULL,
  stream TEXT, stream_node TEXT, stream_epoch INTEGER NOT NULL DEFAULT 0,
  expires INTEGER NOT NULL, idle_since INTEGER, size INTEGER NOT NULL
);
CREATE INDEX sessions_of_holder ON sessions (holder, expires);
CREATE INDEX sessions_by_end ON sessions (expires);
CREATE INDEX sessions_idle ON sessions (holder, idle_since) WHERE idle_since IS NOT NULL;
CREATE TABLE watched (session INTEGER, uri TEXT, PRIMARY KEY (session, uri)) WITHOUT ROWID;
CREATE TABLE copies (session INTEGER, node TEXT, PRIMARY KEY (session, node)) WITHOUT ROWID;
CREATE TABLE uses (session INTEGER, node TEXT, until INTEGER NOT NULL, PRIMARY KEY (session, node)) WITHOUT ROWID;
CREATE TABLE requests (session INTEGER, request TEXT, node TEXT NOT NULL, PRIMARY KEY (session, request)) WITHOUT ROWID;
CREATE TABLE ended (digest TEXT PRIMARY KEY, expires INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX ended_by_end ON ended (expires);
CREATE TABLE idle_holders (holder TEXT PRIMARY KEY, sessions INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX idle_holders_by_number ON idle_holders (sessions);
CREATE INDEX idle_holders_by_bytes ON idle_holders (bytes);
CREATE TABLE holders (holder TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;

CREATE TRIGGER session_idles AFTER UPDATE OF idle_since ON sessions
WHEN old.idle_since IS NULL AND new.idle_since IS NOT NULL BEGIN
  INSERT INTO idle_holders (holder, sessions, bytes) VALUES (new.holder, 1, new.size)
    ON CONFLICT (holder) DO UPDATE SET sessions = sessions + 1, bytes = bytes + excluded.bytes;
  UPDATE tallies SET entries = entries + 1 WHERE name = 'idle';
END;
CREATE TRIGGER session_idles_no_more AFTER UPDATE OF idle_since ON sessions
WHEN old.idle_since IS NOT NULL AND new.idle_since IS NULL BEGIN
  UPDATE idle_holders SET sessions = sessions - 1, bytes = bytes - old.size WHERE holder = old.holder;
  DELETE FROM idle_holders WHERE holder = old.holder AND sessions <= 0;
  UPDATE tallies SET entries = entries - 1 WHERE name = 'idle';
END;
CREATE TRIGGER idle_session_goes AFTER DELETE ON sessions WHEN old.idle_since IS NOT NULL BEGIN
  UPDATE idle_holders SET sessions = sessions - 1, bytes = bytes - old.size WHERE holder = old.holder;
  DELETE FROM idle_holders WHERE holder = old.holder AND sessions <= 0;
  UPDATE tallies SET entries = entries - 1 WHERE name = 'idle';
END;
CREATE TRIGGER session_comes AFTER INSERT ON sessions BEGIN
  INSERT INTO holders VALUES (new.holder, new.size) ON CONFLICT (holder) DO UPDATE SET bytes = bytes + excluded.bytes;
  UPDATE tallies SET entries = entries + 1, bytes = bytes + new.size WHERE name = 'sessions';
END;
CREATE TRIGGER session_is_gone AFTER DELETE ON sessions BEGIN
  UPDATE holders SET bytes = bytes - old.size WHERE holder = old.holder;
  DELETE FROM holders WHERE holder = old.holder AND bytes <= 0;
  UPDATE tallies SET entries = entries - 1, bytes = bytes - old.size WHERE name = 'sessions';
END;
CREATE TRIGGER session_grows AFTER UPDATE OF size ON sessions BEGIN
  UPDATE holders SET bytes = bytes + new.size - old.size WHERE holder = old.holder;
  UPDATE idle_holders SET bytes = bytes + new.size - old.size WHERE holder = old.holder AND old.idle_since IS NOT NULL;
  UPDATE tallies SET bytes = bytes + new.size - old.size WHERE name = 'sessions';
END;
CREATE TRIGGER ended_comes AFTER INSERT ON ended BEGIN
  UPDATE tallies SET entries = entries + 1 WHERE name = 'ended';
END;
CREATE TRIGGER ended_goes AFTER DELETE ON ended BEGIN
  UPDATE tallies SET entries = entries - 1 WHERE name = 'ended';
END;
CREATE TRIGGER session_goes AFTER DELETE ON sessions BEGIN
  DELETE FROM watched WHERE session = old.id;
  DELETE FROM copies WHERE session = old.id;
  DELETE FROM uses WHERE session = old.id;
  DELETE FROM requests WHERE session = old.id;
END;

CREATE TABLE streams (
  id INTEGER PRIMARY KEY, session TEXT NOT NULL, name TEXT NOT NULL, epoch INTEGER NOT NULL, facts TEXT NOT NULL, before TEXT,
  last INTEGER NOT NULL, entries INTEGER NOT NULL, bytes INTEGER NOT NULL, bus TEXT NOT NULL, finished INTEGER NOT NULL,
  expires INTEGER NOT NULL, UNIQUE (session, name)
);
CREATE INDEX streams_by_end ON streams (expires);
-- With ids of their own: texts of a thousand bytes would have a page each in a table without.
CREATE TABLE events (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, seq INTEGER NOT NULL, message TEXT NOT NULL);
CREATE UNIQUE INDEX events_of_stream ON events (stream, seq);

CREATE TABLE grants (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, value TEXT NOT NULL, ends INTEGER NOT NULL,
  pending INTEGER NOT NULL, size INTEGER NOT NULL
);
CREATE INDEX grants_by_end ON grants (ends);
CREATE INDEX grants_pending ON grants (id) WHERE pending = 1;
CREATE TRIGGER grant_comes AFTER INSERT ON grants WHEN new.pending = 1 BEGIN
  UPDATE tallies SET entries = entries + 1, bytes = bytes + new.size WHERE name = 'pending';
END;
CREATE TRIGGER grant_goes AFTER DELETE ON grants WHEN old.pending = 1 BEGIN
  UPDATE tallies SET entries = entries - 1, bytes = bytes - old.size WHERE name = 'pending';
END;

CREATE TABLE tasks (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, holder TEXT NOT NULL, owner TEXT NOT NULL, queue TEXT NOT NULL,
  state TEXT NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, until INTEGER NOT NULL, leased INTEGER NOT NULL,
  version INTEGER NOT NULL, fence INTEGER NOT NULL, runs INTEGER NOT NULL, open INTEGER NOT NULL, size INTEGER NOT NULL,
  note TEXT, body TEXT NOT NULL, outcome TEXT
);
CREATE INDEX tasks_of_holder ON tasks (holder, id);
CREATE INDEX tasks_of_holder_by_size ON tasks (holder, size);
CREATE INDEX tasks_open ON tasks (holder) WHERE state IN ('queued', 'running');
CREATE INDEX tasks_queued ON tasks (queue, holder, id) WHERE state = 'queued';
CREATE INDEX tasks_running ON tasks (queue, holder) WHERE state = 'running';
CREATE INDEX tasks_leased ON tasks (leased) WHERE state = 'running';
CREATE INDEX tasks_by_end ON tasks (until);
CREATE TABLE task_questions (
  id INTEGER PRIMARY KEY, task INTEGER NOT NULL, name TEXT NOT NULL, question TEXT NOT NULL, answer TEXT, UNIQUE (task, name)
);
CREATE TABLE task_turns (queue TEXT, holder TEXT, turn INTEGER NOT NULL, PRIMARY KEY (queue, holder)) WITHOUT ROWID;
CREATE INDEX task_turns_by_turn ON task_turns (queue, turn);
CREATE TABLE task_news (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, queue TEXT NOT NULL, state TEXT NOT NULL);

CREATE TRIGGER task_comes AFTER INSERT ON tasks BEGIN
  UPDATE tallies SET entries = entries + 1, bytes = bytes + new.size WHERE name = 'tasks';
  INSERT INTO task_news (name, queue, state) VALUES (new.name, new.queue, new.state);
END;
CREATE TRIGGER task_goes AFTER DELETE ON tasks BEGIN
  UPDATE tallies SET entries = entries - 1, bytes = bytes - old.size WHERE name = 'tasks';
  DELETE FROM task_questions WHERE task = old.id;
END;
CREATE TRIGGER task_grows AFTER UPDATE OF size ON tasks BEGIN
  UPDATE tallies SET bytes = bytes + new.size - old.size WHERE name = 'tasks';
END;
CREATE TRIGGER task_changes AFTER UPDATE OF version ON tasks BEGIN
  INSERT INTO task_news (name, queue, state) VALUES (new.name, new.queue, new.state);
END;
CREATE TRIGGER task_waits AFTER INSERT ON tasks WHEN new.state = 'queued' BEGIN
  INSERT OR IGNORE INTO task_turns
    SELECT new.queue, new.holder, coalesce(max(turn), 0) + 1 FROM task_turns WHERE queue = new.queue;
END;
CREATE TRIGGER task_waits_again AFTER UPDATE OF state ON tasks WHEN new.state = 'queued' BEGIN
  INSERT OR IGNORE INTO task_turns
    SELECT new.queue, new.holder, coalesce(max(turn), 0) + 1 FROM task_turns WHERE queue = new.queue;
END;
CREATE TRIGGER task_waits_no_more AFTER UPDATE OF state ON tasks WHEN old.state = 'queued' BEGIN
  DELETE FROM task_turns WHERE queue = old.queue AND holder = old.holder
    AND NOT EXISTS (SELECT 1 FROM tasks WHERE queue = old.queue AND holder = old.holder AND state = 'queued');
END;
CREATE TRIGGER task_that_waits_goes AFTER DELETE ON tasks WHEN old.state = 'queued' BEGIN
  DELETE FROM task_turns WHERE queue = old.queue AND holder = old.holder
    AND NOT EXISTS (SELECT 1 FROM tasks WHERE queue = old.queue AND holder = old.holder AND state = 'queued');
END;
`
