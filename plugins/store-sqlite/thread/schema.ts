// The tables. Times are milliseconds since the epoch. Triggers keep dependent rows and counts up to date.
import { STORE_SCHEMA } from './partition.ts'

/** Files of earlier versions are refused. */
export const SCHEMA_VERSION = 6

export const SCHEMA = `${STORE_SCHEMA}
CREATE TABLE probe (id INTEGER PRIMARY KEY, filler BLOB);
CREATE TABLE tallies (name TEXT PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO tallies VALUES ('tasks', 0, 0);

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
