// The tables and functions in PostgreSQL. `S` is the placeholder of the schema; times are milliseconds since the epoch.

/** Startup fails for databases with another version. */
export const SCHEMA_VERSION = 2

const TABLES = `
CREATE TABLE IF NOT EXISTS S.format (version integer PRIMARY KEY);

-- Records, sets and logs. \`size\`: the version of a record, the members of a set, or the last number of a log.
CREATE TABLE IF NOT EXISTS S.entries (
  partition text COLLATE "C", kind text COLLATE "C", name text COLLATE "C", size bigint NOT NULL, fields jsonb, first bigint,
  bytes bigint, expires float8, PRIMARY KEY (partition, kind, name)
);
CREATE INDEX IF NOT EXISTS entries_by_end ON S.entries (expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS S.members (
  partition text COLLATE "C", name text COLLATE "C", member text COLLATE "C", score float8 NOT NULL,
  PRIMARY KEY (partition, name, member)
);
CREATE INDEX IF NOT EXISTS members_by_score ON S.members (partition, name, score, member);
CREATE TABLE IF NOT EXISTS S.messages (
  partition text COLLATE "C", name text COLLATE "C", number bigint, message text NOT NULL,
  PRIMARY KEY (partition, name, number)
);

CREATE TABLE IF NOT EXISTS S.nodes (node text PRIMARY KEY, seen float8 NOT NULL);
CREATE TABLE IF NOT EXISTS S.letters (id bigserial PRIMARY KEY, node text NOT NULL, message text NOT NULL);
CREATE INDEX IF NOT EXISTS letters_of_node ON S.letters (node, id);
CREATE TABLE IF NOT EXISTS S.bus (id integer PRIMARY KEY, last bigint NOT NULL);
CREATE TABLE IF NOT EXISTS S.texts (position bigint PRIMARY KEY, message text NOT NULL, token text NOT NULL);
CREATE INDEX IF NOT EXISTS texts_by_token ON S.texts (token);
`

const STORE = `
CREATE OR REPLACE FUNCTION S.clock() RETURNS float8 LANGUAGE sql VOLATILE AS $$
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 $$;

CREATE OR REPLACE FUNCTION S.number_in(value text) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN coalesce(value, '') = '' THEN 0 WHEN value ~ '^-?[0-9]+([.][0-9]+)?$' THEN value::numeric ELSE 'NaN' END $$;

CREATE OR REPLACE FUNCTION S.score_at(score jsonb, now float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE jsonb_typeof(score) WHEN 'object' THEN now + (score->>'now')::float8 WHEN 'number' THEN score::float8 END $$;

CREATE OR REPLACE FUNCTION S.texts_in(list jsonb) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_array_elements_text(list) $$;

-- Deletes the content of a set or log with its row.
CREATE OR REPLACE FUNCTION S.delete_content() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  DELETE FROM S.members WHERE old.kind = 'set' AND partition = old.partition AND name = old.name;
  DELETE FROM S.messages WHERE old.kind = 'log' AND partition = old.partition AND name = old.name;
  RETURN old;
END $$;
DROP TRIGGER IF EXISTS delete_content ON S.entries;
CREATE TRIGGER delete_content AFTER DELETE ON S.entries
  FOR EACH ROW WHEN (old.kind <> 'record') EXECUTE FUNCTION S.delete_content();

CREATE OR REPLACE FUNCTION S.delete_entry(p text, k text, n text) RETURNS void LANGUAGE sql AS $$
  DELETE FROM S.entries WHERE partition = p AND kind = k AND name = n $$;

-- Deletes an expired set or log.
CREATE OR REPLACE FUNCTION S.open_entry(p text, k text, n text, now float8) RETURNS S.entries LANGUAGE plpgsql AS $$
DECLARE e S.entries; BEGIN
  SELECT * INTO e FROM S.entries WHERE partition = p AND kind = k AND name = n;
  IF e.expires <= now THEN
    PERFORM S.delete_entry(p, k, n);
    RETURN NULL;
  END IF;
  RETURN e;
END $$;

-- Undefined if the conditions of the step hold, otherwise what it found.
CREATE OR REPLACE FUNCTION S.unmet(p text, step jsonb, now float8) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE e S.entries; n text; f jsonb; size bigint; lowest float8; BEGIN
  IF step ? 'record' THEN
    SELECT * INTO e FROM S.entries WHERE partition = p AND kind = 'record' AND name = step->>'record' AND coalesce(expires > now, true);
    f := coalesce(e.fields, '{}');
    IF coalesce((step->>'exists')::boolean = (e.size IS NOT NULL), true)
      AND coalesce((step->>'version')::bigint = coalesce(e.size, 0), true)
      AND NOT EXISTS (SELECT 1 FROM jsonb_each(step->'where') AS w (field, allowed) WHERE NOT
        CASE jsonb_typeof(allowed) WHEN 'array' THEN allowed @> coalesce(f->field, 'null')
        ELSE allowed = coalesce(f->field, 'null') END)
      AND NOT EXISTS (SELECT 1 FROM jsonb_each_text(step->'most') AS m (field, most) WHERE NOT
        S.number_in(f->>field) + coalesce((step->'add'->>field)::numeric, 0) <= most::numeric)
    THEN RETURN NULL; END IF;
    RETURN jsonb_strip_nulls(jsonb_build_object('version', coalesce(e.size, 0), 'fields', f, 'expires', e.expires));
  ELSIF step ? 'log' THEN
    n := step->>'log';
    e := S.open_entry(p, 'log', n, now);
    IF NOT step ? 'after' OR step ? 'reset' OR coalesce(e.size, 0) = (step->>'after')::bigint
      OR jsonb_array_length(step->'append') > 0 AND NOT EXISTS (
        SELECT 1 FROM jsonb_array_elements_text(step->'append') WITH ORDINALITY AS a (message, i) WHERE NOT EXISTS (
          SELECT 1 FROM S.messages AS m WHERE m.partition = p AND m.name = n
          AND m.number = (step->>'after')::bigint + a.i AND m.message = a.message))
    THEN RETURN NULL; END IF;
    RETURN jsonb_build_object('last', coalesce(e.size, 0));
  END IF;
  n := step->>'sortedSet';
  e := S.open_entry(p, 'set', n, now);
  size := coalesce(e.size, 0);
  lowest := coalesce(S.score_at(step->'below', now), '-Infinity');
  IF step ? 'most' AND step ? 'below' THEN
    SELECT size - count(*) INTO size FROM S.members WHERE partition = p AND name = n AND score < lowest;
  END IF;
  IF coalesce(size <= (step->>'most')::float8, true)
    AND NOT EXISTS (SELECT 1 FROM S.texts_in(step->'has') AS h WHERE NOT EXISTS (
      SELECT 1 FROM S.members WHERE partition = p AND name = n AND member = h AND score >= lowest))
    AND NOT EXISTS (SELECT 1 FROM S.texts_in(step->'lacks') AS h
      JOIN S.members ON partition = p AND name = n AND member = h AND score >= lowest)
  THEN RETURN NULL; END IF;
  RETURN jsonb_build_object('size', coalesce(e.size, 0));
END $$;

CREATE OR REPLACE FUNCTION S.change_record(p text, step jsonb, now float8) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE e S.entries; n text := step->>'record'; f jsonb; v bigint; until float8; ttl jsonb := step->'ttl'; BEGIN
  SELECT * INTO e FROM S.entries WHERE partition = p AND kind = 'record' AND name = n AND coalesce(expires > now, true);
  IF (step->>'delete')::boolean THEN
    PERFORM S.delete_entry(p, 'record', n);
    RETURN CASE WHEN step ? 'know' AND e.size IS NOT NULL
      THEN jsonb_build_object('version', 0, 'fields', e.fields) ELSE '{"version": 0}' END;
  END IF;
  f := (coalesce(e.fields, '{}') || coalesce(step->'set', '{}')) - ARRAY(SELECT S.texts_in(step->'unset'));
  f := f || coalesce((SELECT jsonb_object_agg(field, (S.number_in(f->>field) + amount::numeric)::text)
    FROM jsonb_each_text(step->'add') AS a (field, amount)), '{}');
  IF e.size IS NULL AND f = '{}' THEN RETURN '{"version": 0}'; END IF;
  v := coalesce(e.size + (f <> e.fields)::int, now::bigint);
  IF jsonb_typeof(ttl) = 'object' THEN ttl := CASE WHEN e.size IS NULL THEN ttl->'new' END; END IF;
  until := CASE WHEN ttl IS NULL THEN e.expires ELSE now + ttl::float8 END;
  IF until <= now THEN PERFORM S.delete_entry(p, 'record', n);
  ELSIF v IS DISTINCT FROM e.size THEN
    INSERT INTO S.entries VALUES (p, 'record', n, v, f, NULL, NULL, until) ON CONFLICT (partition, kind, name) DO UPDATE
      SET size = excluded.size, fields = excluded.fields, expires = excluded.expires;
  ELSIF until IS DISTINCT FROM e.expires THEN
    UPDATE S.entries SET expires = until WHERE partition = p AND kind = 'record' AND name = n;
  END IF;
  RETURN jsonb_build_object('version', v)
    || CASE WHEN (step->>'know')::bigint <> v THEN jsonb_build_object('fields', f) ELSE '{}' END
    || CASE WHEN until IS NULL THEN '{}' ELSE jsonb_build_object('expires', until) END;
END $$;

CREATE OR REPLACE FUNCTION S.change_set(p text, step jsonb, now float8) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE e S.entries; n text := step->>'sortedSet'; gone bigint; size bigint; until float8; BEGIN
  e := S.open_entry(p, 'set', n, now);
  size := CASE WHEN (step->>'delete')::boolean THEN 0 ELSE coalesce(e.size, 0) END;
  IF NOT coalesce((step->>'delete')::boolean, false) THEN
    IF step ? 'below' THEN
      DELETE FROM S.members WHERE partition = p AND name = n AND score < S.score_at(step->'below', now);
      GET DIAGNOSTICS gone = ROW_COUNT;
      size := size - gone;
    END IF;
    IF step ? 'remove' THEN
      DELETE FROM S.members WHERE partition = p AND name = n AND member IN (SELECT S.texts_in(step->'remove'));
      GET DIAGNOSTICS gone = ROW_COUNT;
      size := size - gone;
    END IF;
    -- An empty set does not exist: its time ends.
    until := CASE WHEN size > 0 THEN e.expires END;
    UPDATE S.members SET score = S.score_at(t.score, now) FROM jsonb_each(step->'touch') AS t (touched, score)
      WHERE partition = p AND name = n AND member = touched;
    IF step ? 'put' THEN
      WITH written AS (
        INSERT INTO S.members SELECT p, n, member, S.score_at(score, now) FROM jsonb_each(step->'put') AS t (member, score)
        ON CONFLICT (partition, name, member) DO UPDATE SET score = excluded.score RETURNING xmax = 0 AS is_new
      ) SELECT size + count(*) FILTER (WHERE is_new) INTO size FROM written;
    END IF;
    IF size > (step->>'keep')::bigint THEN
      DELETE FROM S.members WHERE partition = p AND name = n AND member IN (
        SELECT member FROM S.members WHERE partition = p AND name = n
        ORDER BY score, member LIMIT size - (step->>'keep')::bigint);
      size := (step->>'keep')::bigint;
    END IF;
    IF step ? 'ttl' THEN until := now + (step->>'ttl')::float8; END IF;
  END IF;
  IF until <= now THEN size := 0; END IF;
  IF size = 0 THEN
    DELETE FROM S.members WHERE partition = p AND name = n;
    PERFORM S.delete_entry(p, 'set', n);
  ELSIF e.size IS DISTINCT FROM size OR e.expires IS DISTINCT FROM until THEN
    INSERT INTO S.entries VALUES (p, 'set', n, size, NULL, NULL, NULL, until)
      ON CONFLICT (partition, kind, name) DO UPDATE SET size = excluded.size, expires = excluded.expires;
  END IF;
  RETURN jsonb_build_object('size', size);
END $$;

CREATE OR REPLACE FUNCTION S.change_log(p text, step jsonb, now float8) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE e S.entries; n text := step->>'log'; k jsonb := step->'keep'; f bigint; BEGIN
  e := S.open_entry(p, 'log', n, now);
  IF (step->>'delete')::boolean THEN
    PERFORM S.delete_entry(p, 'log', n);
    RETURN '{"last": 0}';
  END IF;
  IF step ? 'reset' THEN
    DELETE FROM S.messages WHERE partition = p AND name = n;
    e.size := (step->>'reset')::bigint;
    e.first := e.size + 1;
    e.bytes := 0;
  END IF;
  IF jsonb_array_length(step->'append') > 0
    AND (step ? 'reset' OR NOT step ? 'after' OR (step->>'after')::bigint = coalesce(e.size, 0))
  THEN
    f := coalesce(e.first, 1);
    WITH written AS (
      INSERT INTO S.messages SELECT p, n, coalesce(e.size, 0) + i, message
      FROM jsonb_array_elements_text(step->'append') WITH ORDINALITY AS a (message, i) RETURNING message
    ) SELECT coalesce(e.size, 0) + count(*), coalesce(e.bytes, 0) + sum(octet_length(message)) INTO e.size, e.bytes
    FROM written;
    e.first := f;
    WHILE k IS NOT NULL AND f < e.size AND (e.size - f + 1 > (k->>'messages')::float8 OR e.bytes > (k->>'bytes')::float8) LOOP
      e.bytes := e.bytes - (SELECT octet_length(message) FROM S.messages WHERE partition = p AND name = n AND number = f);
      f := f + 1;
    END LOOP;
    IF f > e.first THEN
      DELETE FROM S.messages WHERE partition = p AND name = n AND number < f;
      e.first := f;
    END IF;
  END IF;
  IF e.size IS NULL THEN RETURN '{"last": 0}'; END IF;
  IF step ? 'ttl' THEN e.expires := now + (step->>'ttl')::float8; END IF;
  IF e.expires <= now THEN
    DELETE FROM S.messages WHERE partition = p AND name = n;
    PERFORM S.delete_entry(p, 'log', n);
    RETURN '{"last": 0}';
  END IF;
  INSERT INTO S.entries VALUES (p, 'log', n, e.size, NULL, e.first, e.bytes, e.expires) ON CONFLICT (partition, kind, name)
    DO UPDATE SET first = excluded.first, size = excluded.size, bytes = excluded.bytes, expires = excluded.expires;
  RETURN jsonb_build_object('last', e.size);
END $$;

CREATE OR REPLACE FUNCTION S.lock_of(p text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT hashtextextended('S ' || p, 0) $$;

-- The lock is held until the commit, so the statements after it see all earlier changes of the partition.
CREATE OR REPLACE FUNCTION S.transact(deadline float8, p text, steps jsonb, relaxed boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE now float8; step jsonb; i bigint; results jsonb[] := '{}'; found jsonb; BEGIN
  IF relaxed THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
  PERFORM pg_advisory_xact_lock(S.lock_of(p));
  now := S.clock();
  IF now > deadline THEN RETURN jsonb_build_object('late', true, 'now', now); END IF;
  FOR step, i IN SELECT * FROM jsonb_array_elements(steps) WITH ORDINALITY LOOP
    found := S.unmet(p, step, now);
    IF found IS NOT NULL THEN
      RETURN jsonb_build_object('done', false, 'step', i - 1, 'found', found, 'now', now);
    END IF;
  END LOOP;
  FOR step IN SELECT * FROM jsonb_array_elements(steps) LOOP
    results := results || CASE WHEN step ? 'record' THEN S.change_record(p, step, now)
      WHEN step ? 'log' THEN S.change_log(p, step, now) ELSE S.change_set(p, step, now) END;
  END LOOP;
  RETURN jsonb_build_object('done', true, 'results', results, 'now', now);
END $$;

CREATE OR REPLACE FUNCTION S.answer(p text, q jsonb, now float8) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE e S.entries; n text; lowest float8; highest float8; most bigint; list jsonb; BEGIN
  IF q ? 'record' THEN
    SELECT * INTO e FROM S.entries WHERE partition = p AND kind = 'record' AND name = q->>'record' AND coalesce(expires > now, true);
    RETURN CASE WHEN e.size IS NULL THEN 'null' ELSE jsonb_strip_nulls(
      jsonb_build_object('version', e.size, 'fields', e.fields, 'expires', e.expires, 'now', now)) END;
  ELSIF q ? 'log' THEN
    n := q->>'log';
    SELECT * INTO e FROM S.entries WHERE partition = p AND kind = 'log' AND name = n AND coalesce(expires > now, true);
    IF e.size IS NULL THEN RETURN 'null'; END IF;
    IF (q->>'after')::bigint > e.size OR (q->>'after')::bigint < e.first - 1 THEN
      RETURN jsonb_build_object('last', e.size);
    END IF;
    IF coalesce((q->>'bytes')::float8 > 0, true) THEN
      SELECT jsonb_agg(message ORDER BY number) INTO list FROM (
        SELECT number, message, sum(octet_length(message)) OVER (ORDER BY number) AS total
        FROM S.messages WHERE partition = p AND name = n AND number > (q->>'after')::bigint) AS m
      WHERE number = (q->>'after')::bigint + 1 OR coalesce(total <= (q->>'bytes')::float8, true);
    END IF;
    RETURN jsonb_build_object('last', e.size, 'messages', coalesce(list, '[]'));
  END IF;
  n := q->>'sortedSet';
  SELECT * INTO e FROM S.entries WHERE partition = p AND kind = 'set' AND name = n AND coalesce(expires > now, true);
  IF e.size IS NOT NULL THEN
    lowest := coalesce(S.score_at(q->'from', now), '-Infinity');
    highest := coalesce(S.score_at(q->'to', now), 'Infinity');
    most := (q->>'limit')::bigint;
    IF (q->>'reverse')::boolean THEN
      SELECT jsonb_agg(jsonb_build_object('member', member, 'score', score)) INTO list FROM (
        SELECT member, score FROM S.members WHERE partition = p AND name = n AND score >= lowest AND score <= highest
        ORDER BY score DESC, member DESC LIMIT most) AS m;
    ELSE
      SELECT jsonb_agg(jsonb_build_object('member', member, 'score', score)) INTO list FROM (
        SELECT member, score FROM S.members WHERE partition = p AND name = n AND score >= lowest AND score <= highest
        ORDER BY score, member LIMIT most) AS m;
    END IF;
  END IF;
  RETURN jsonb_build_object('members', coalesce(list, '[]'), 'size', coalesce(e.size, 0), 'now', now);
END $$;

-- Stable: all queries see one state.
CREATE OR REPLACE FUNCTION S.read(p text, queries jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE now float8 := S.clock(); BEGIN
  RETURN jsonb_build_object('now', now, 'answers', (
    SELECT coalesce(jsonb_agg(S.answer(p, q, now) ORDER BY i), '[]')
    FROM jsonb_array_elements(queries) WITH ORDINALITY AS a (q, i)));
END $$;

-- Deletes some of what has expired. Returns whether there is more.
CREATE OR REPLACE FUNCTION S.upkeep(most integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE now float8 := S.clock(); found text; gone bigint := 0; BEGIN
  IF NOT pg_try_advisory_xact_lock(S.lock_of('upkeep')) THEN RETURN false; END IF;
  FOR found IN SELECT DISTINCT partition FROM (SELECT partition FROM S.entries WHERE expires <= now LIMIT most) AS e LOOP
    CONTINUE WHEN NOT pg_try_advisory_xact_lock(S.lock_of(found));
    DELETE FROM S.entries WHERE partition = found AND expires <= now;
    gone := gone + 1;
  END LOOP;
  DELETE FROM S.nodes WHERE seen < now - 60000;
  DELETE FROM S.letters WHERE node NOT IN (SELECT node FROM S.nodes);
  RETURN gone > 0 AND EXISTS (SELECT 1 FROM S.entries WHERE expires <= now);
END $$;
`

const BUS = `
CREATE OR REPLACE FUNCTION S.wake(node text) RETURNS void LANGUAGE sql AS $$ SELECT pg_notify('S', node) $$;

-- The lock of the row is held until the commit, so positions have the order of the commits and no gaps, except after lost texts.
CREATE OR REPLACE FUNCTION S.publish(messages jsonb, sent text, gap integer, kept bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE l bigint; BEGIN
  SELECT last INTO l FROM S.bus FOR UPDATE;
  IF EXISTS (SELECT 1 FROM S.texts WHERE token = sent) THEN RETURN true; END IF;
  l := l + gap;
  INSERT INTO S.texts SELECT l + i, message, sent FROM jsonb_array_elements_text(messages) WITH ORDINALITY AS a (message, i);
  UPDATE S.bus SET last = l + jsonb_array_length(messages);
  DELETE FROM S.texts WHERE position <= l - kept;
  PERFORM S.wake('');
  RETURN true;
END $$;

-- Returns for each letter whether its node exists. \`unsure\`: a node that is silent exists.
CREATE OR REPLACE FUNCTION S.send(deadline float8, sent jsonb, unsure boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE now float8 := S.clock(); letter jsonb; results jsonb := '[]'; BEGIN
  IF now > deadline THEN RETURN jsonb_build_object('late', true, 'now', now); END IF;
  FOR letter IN SELECT * FROM jsonb_array_elements(sent) LOOP
    IF EXISTS (SELECT 1 FROM S.nodes WHERE node = letter->>0 AND (unsure OR seen > now - 15000)) THEN
      INSERT INTO S.letters (node, message) VALUES (letter->>0, letter->>1);
      PERFORM S.wake(letter->>0);
      results := results || 'true';
    ELSE results := results || 'false'; END IF;
  END LOOP;
  RETURN jsonb_build_object('now', now, 'results', results);
END $$;

-- Deletes the letters that were received, and returns new ones and new texts from one snapshot.
CREATE OR REPLACE FUNCTION S.receive(n text, known bigint, received jsonb, most integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE now float8 := S.clock(); BEGIN
  DELETE FROM S.letters WHERE node = n AND id IN (SELECT S.texts_in(received)::bigint);
  INSERT INTO S.nodes VALUES (n, now) ON CONFLICT (node) DO UPDATE SET seen = excluded.seen WHERE nodes.seen < now - 1000;
  RETURN jsonb_build_object('now', now, 'last', (SELECT last FROM S.bus),
    'letters', (SELECT coalesce(jsonb_agg(jsonb_build_array(id, message) ORDER BY id), '[]') FROM (
      SELECT id, message FROM S.letters WHERE node = n ORDER BY id LIMIT most) AS l),
    'texts', (SELECT coalesce(jsonb_agg(jsonb_build_array(position, message) ORDER BY position), '[]') FROM (
      SELECT position, message FROM S.texts WHERE position > known ORDER BY position LIMIT most) AS t));
END $$;
`

const OTHERS = `
CREATE OR REPLACE FUNCTION S.since(known bigint) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('last', (SELECT last FROM S.bus), 'texts', (
    SELECT coalesce(jsonb_agg(jsonb_build_array(position, message) ORDER BY position), '[]')
    FROM S.texts WHERE position > known))::text $$;

CREATE OR REPLACE FUNCTION S.is_alive(n text, unsure boolean) RETURNS boolean LANGUAGE sql AS $$
  SELECT EXISTS (SELECT 1 FROM S.nodes WHERE node = n AND (unsure OR seen > S.clock() - 15000)) $$;

CREATE OR REPLACE FUNCTION S.leave(n text) RETURNS boolean LANGUAGE sql AS $$
  DELETE FROM S.letters WHERE node = n;
  DELETE FROM S.nodes WHERE node = n RETURNING true $$;
`

const FIRST = `
INSERT INTO S.bus VALUES (1, S.clock()) ON CONFLICT DO NOTHING;
INSERT INTO S.format VALUES (${SCHEMA_VERSION}) ON CONFLICT DO NOTHING;
`

/** Returns SQL that creates missing tables and functions. Requires the privileges of the schema's owner. */
export const schemaOf = (schema: string): string => `
BEGIN;
SELECT pg_advisory_xact_lock(hashtextextended('${schema}', 1));
DO $$ BEGIN IF to_regnamespace('"${schema}"') IS NULL THEN CREATE SCHEMA "${schema}"; END IF; END $$;
${[TABLES, STORE, BUS, OTHERS, FIRST]
  .join('')
  .replaceAll('S.', `"${schema}".`)
  .replaceAll(/(?<=')S(?=[ '])/g, schema)}
COMMIT`
