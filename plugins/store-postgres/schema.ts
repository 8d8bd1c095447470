// The tables and functions in PostgreSQL. `S` stands for the schema; times are milliseconds since the epoch.

/** Startup fails for databases with another version. */
export const SCHEMA_VERSION = 1

const TABLES = `
CREATE TABLE IF NOT EXISTS S.format (version integer PRIMARY KEY);

CREATE TABLE IF NOT EXISTS S.records (
  partition text COLLATE "C", name text COLLATE "C", version bigint NOT NULL, fields jsonb NOT NULL, expires float8,
  PRIMARY KEY (partition, name)
);
CREATE INDEX IF NOT EXISTS records_by_end ON S.records (expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS S.sets (
  partition text COLLATE "C", name text COLLATE "C", size bigint NOT NULL, expires float8, PRIMARY KEY (partition, name)
);
CREATE INDEX IF NOT EXISTS sets_by_end ON S.sets (expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS S.members (
  partition text COLLATE "C", name text COLLATE "C", member text COLLATE "C", score float8 NOT NULL,
  PRIMARY KEY (partition, name, member)
);
CREATE INDEX IF NOT EXISTS members_by_score ON S.members (partition, name, score, member);
CREATE TABLE IF NOT EXISTS S.logs (
  partition text COLLATE "C", name text COLLATE "C", first bigint NOT NULL, last bigint NOT NULL, bytes bigint NOT NULL,
  expires float8, PRIMARY KEY (partition, name)
);
CREATE INDEX IF NOT EXISTS logs_by_end ON S.logs (expires) WHERE expires IS NOT NULL;
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

-- The set or log, without its content if it has expired.
CREATE OR REPLACE FUNCTION S.open_set(p text, n text, now float8) RETURNS S.sets LANGUAGE plpgsql AS $$
DECLARE s S.sets; BEGIN
  SELECT * INTO s FROM S.sets WHERE partition = p AND name = n;
  IF s.expires <= now THEN
    DELETE FROM S.members WHERE partition = p AND name = n;
    DELETE FROM S.sets WHERE partition = p AND name = n;
    RETURN NULL;
  END IF;
  RETURN s;
END $$;

CREATE OR REPLACE FUNCTION S.open_log(p text, n text, now float8) RETURNS S.logs LANGUAGE plpgsql AS $$
DECLARE l S.logs; BEGIN
  SELECT * INTO l FROM S.logs WHERE partition = p AND name = n;
  IF l.expires <= now THEN
    DELETE FROM S.messages WHERE partition = p AND name = n;
    DELETE FROM S.logs WHERE partition = p AND name = n;
    RETURN NULL;
  END IF;
  RETURN l;
END $$;

-- Undefined if the conditions of the step hold, otherwise what it found.
CREATE OR REPLACE FUNCTION S.unmet(p text, step jsonb, now float8) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE r S.records; s S.sets; l S.logs; n text; f jsonb; size bigint; lowest float8; BEGIN
  IF step ? 'record' THEN
    SELECT * INTO r FROM S.records WHERE partition = p AND name = step->>'record' AND coalesce(expires > now, true);
    f := coalesce(r.fields, '{}');
    IF coalesce((step->>'exists')::boolean = (r.version IS NOT NULL), true)
      AND coalesce((step->>'version')::bigint = coalesce(r.version, 0), true)
      AND NOT EXISTS (SELECT 1 FROM jsonb_each(step->'where') AS w (field, allowed) WHERE NOT
        CASE jsonb_typeof(allowed) WHEN 'array' THEN allowed @> coalesce(f->field, 'null')
        ELSE allowed = coalesce(f->field, 'null') END)
      AND NOT EXISTS (SELECT 1 FROM jsonb_each_text(step->'most') AS m (field, most) WHERE NOT
        S.number_in(f->>field) + coalesce((step->'add'->>field)::numeric, 0) <= most::numeric)
    THEN RETURN NULL; END IF;
    RETURN jsonb_strip_nulls(jsonb_build_object('version', coalesce(r.version, 0), 'fields', f, 'expires', r.expires));
  ELSIF step ? 'log' THEN
    n := step->>'log';
    l := S.open_log(p, n, now);
    IF NOT step ? 'after' OR step ? 'reset' OR coalesce(l.last, 0) = (step->>'after')::bigint
      OR jsonb_array_length(step->'append') > 0 AND NOT EXISTS (
        SELECT 1 FROM jsonb_array_elements_text(step->'append') WITH ORDINALITY AS a (message, i) WHERE NOT EXISTS (
          SELECT 1 FROM S.messages AS m WHERE m.partition = p AND m.name = n
          AND m.number = (step->>'after')::bigint + a.i AND m.message = a.message))
    THEN RETURN NULL; END IF;
    RETURN jsonb_build_object('last', coalesce(l.last, 0));
  END IF;
  n := step->>'sortedSet';
  s := S.open_set(p, n, now);
  size := coalesce(s.size, 0);
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
  RETURN jsonb_build_object('size', coalesce(s.size, 0));
END $$;

CREATE OR REPLACE FUNCTION S.change_record(p text, step jsonb, now float8) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE r S.records; n text := step->>'record'; f jsonb; v bigint; e float8; ttl jsonb := step->'ttl'; BEGIN
  SELECT * INTO r FROM S.records WHERE partition = p AND name = n AND coalesce(expires > now, true);
  IF (step->>'delete')::boolean THEN
    DELETE FROM S.records WHERE partition = p AND name = n;
    RETURN CASE WHEN step ? 'know' AND r.version IS NOT NULL
      THEN jsonb_build_object('version', 0, 'fields', r.fields) ELSE '{"version": 0}' END;
  END IF;
  f := (coalesce(r.fields, '{}') || coalesce(step->'set', '{}')) - ARRAY(SELECT S.texts_in(step->'unset'));
  f := f || coalesce((SELECT jsonb_object_agg(field, (S.number_in(f->>field) + amount::numeric)::text)
    FROM jsonb_each_text(step->'add') AS a (field, amount)), '{}');
  IF r.version IS NULL AND f = '{}' THEN RETURN '{"version": 0}'; END IF;
  v := coalesce(r.version + (f <> r.fields)::int, now::bigint);
  IF jsonb_typeof(ttl) = 'object' THEN ttl := CASE WHEN r.version IS NULL THEN ttl->'new' END; END IF;
  e := CASE WHEN ttl IS NULL THEN r.expires ELSE now + ttl::float8 END;
  IF e <= now THEN DELETE FROM S.records WHERE partition = p AND name = n;
  ELSIF v IS DISTINCT FROM r.version THEN
    INSERT INTO S.records VALUES (p, n, v, f, e) ON CONFLICT (partition, name) DO UPDATE
      SET version = excluded.version, fields = excluded.fields, expires = excluded.expires;
  ELSIF e IS DISTINCT FROM r.expires THEN UPDATE S.records SET expires = e WHERE partition = p AND name = n;
  END IF;
  RETURN jsonb_build_object('version', v)
    || CASE WHEN (step->>'know')::bigint <> v THEN jsonb_build_object('fields', f) ELSE '{}' END
    || CASE WHEN e IS NULL THEN '{}' ELSE jsonb_build_object('expires', e) END;
END $$;

CREATE OR REPLACE FUNCTION S.change_set(p text, step jsonb, now float8) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE s S.sets; n text := step->>'sortedSet'; gone bigint; size bigint; e float8; BEGIN
  s := S.open_set(p, n, now);
  size := coalesce(s.size, 0);
  IF (step->>'delete')::boolean THEN
    DELETE FROM S.members WHERE partition = p AND name = n;
    size := 0;
  ELSE
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
    e := CASE WHEN size > 0 THEN s.expires END;
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
    IF step ? 'ttl' THEN e := now + (step->>'ttl')::float8; END IF;
  END IF;
  IF size = 0 THEN DELETE FROM S.sets WHERE partition = p AND name = n;
  ELSIF s.size IS DISTINCT FROM size OR s.expires IS DISTINCT FROM e THEN
    INSERT INTO S.sets VALUES (p, n, size, e)
      ON CONFLICT (partition, name) DO UPDATE SET size = excluded.size, expires = excluded.expires;
    size := coalesce((S.open_set(p, n, now)).size, 0);
  END IF;
  RETURN jsonb_build_object('size', size);
END $$;

CREATE OR REPLACE FUNCTION S.change_log(p text, step jsonb, now float8) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE l S.logs; n text := step->>'log'; k jsonb := step->'keep'; f bigint; BEGIN
  l := S.open_log(p, n, now);
  IF (step->>'delete')::boolean THEN
    DELETE FROM S.messages WHERE partition = p AND name = n;
    DELETE FROM S.logs WHERE partition = p AND name = n;
    RETURN '{"last": 0}';
  END IF;
  IF step ? 'reset' THEN
    DELETE FROM S.messages WHERE partition = p AND name = n;
    l.last := (step->>'reset')::bigint;
    l.first := l.last + 1;
    l.bytes := 0;
  END IF;
  IF jsonb_array_length(step->'append') > 0
    AND (step ? 'reset' OR NOT step ? 'after' OR (step->>'after')::bigint = coalesce(l.last, 0))
  THEN
    l.first := coalesce(l.first, 1);
    WITH written AS (
      INSERT INTO S.messages SELECT p, n, coalesce(l.last, 0) + i, message
      FROM jsonb_array_elements_text(step->'append') WITH ORDINALITY AS a (message, i) RETURNING message
    ) SELECT coalesce(l.last, 0) + count(*), coalesce(l.bytes, 0) + sum(octet_length(message)) INTO l.last, l.bytes
    FROM written;
    f := l.first;
    WHILE k IS NOT NULL AND f < l.last AND (l.last - f + 1 > (k->>'messages')::float8 OR l.bytes > (k->>'bytes')::float8) LOOP
      l.bytes := l.bytes - (SELECT octet_length(message) FROM S.messages WHERE partition = p AND name = n AND number = f);
      f := f + 1;
    END LOOP;
    IF f > l.first THEN
      DELETE FROM S.messages WHERE partition = p AND name = n AND number < f;
      l.first := f;
    END IF;
  END IF;
  IF l.last IS NULL THEN RETURN '{"last": 0}'; END IF;
  IF step ? 'ttl' THEN l.expires := now + (step->>'ttl')::float8; END IF;
  INSERT INTO S.logs VALUES (p, n, l.first, l.last, l.bytes, l.expires) ON CONFLICT (partition, name) DO UPDATE
    SET first = excluded.first, last = excluded.last, bytes = excluded.bytes, expires = excluded.expires;
  RETURN jsonb_build_object('last', coalesce((S.open_log(p, n, now)).last, 0));
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
DECLARE r S.records; s S.sets; l S.logs; n text; lowest float8; highest float8; most bigint; list jsonb; BEGIN
  IF q ? 'record' THEN
    SELECT * INTO r FROM S.records WHERE partition = p AND name = q->>'record' AND coalesce(expires > now, true);
    RETURN CASE WHEN r.version IS NULL THEN 'null' ELSE jsonb_strip_nulls(
      jsonb_build_object('version', r.version, 'fields', r.fields, 'expires', r.expires, 'now', now)) END;
  ELSIF q ? 'log' THEN
    n := q->>'log';
    SELECT * INTO l FROM S.logs WHERE partition = p AND name = n AND coalesce(expires > now, true);
    IF l.last IS NULL THEN RETURN 'null'; END IF;
    IF (q->>'after')::bigint > l.last OR (q->>'after')::bigint < l.first - 1 THEN
      RETURN jsonb_build_object('last', l.last);
    END IF;
    IF coalesce((q->>'bytes')::float8 > 0, true) THEN
      SELECT jsonb_agg(message ORDER BY number) INTO list FROM (
        SELECT number, message, sum(octet_length(message)) OVER (ORDER BY number) AS total
        FROM S.messages WHERE partition = p AND name = n AND number > (q->>'after')::bigint) AS m
      WHERE number = (q->>'after')::bigint + 1 OR coalesce(total <= (q->>'bytes')::float8, true);
    END IF;
    RETURN jsonb_build_object('last', l.last, 'messages', coalesce(list, '[]'));
  END IF;
  n := q->>'sortedSet';
  SELECT * INTO s FROM S.sets WHERE partition = p AND name = n AND coalesce(expires > now, true);
  IF s.size IS NOT NULL THEN
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
  RETURN jsonb_build_object('members', coalesce(list, '[]'), 'size', coalesce(s.size, 0), 'now', now);
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
DECLARE now float8 := S.clock(); found record; gone bigint; BEGIN
  IF NOT pg_try_advisory_xact_lock(S.lock_of('upkeep')) THEN RETURN false; END IF;
  DELETE FROM S.records WHERE (partition, name) IN (
    SELECT partition, name FROM S.records WHERE expires <= now ORDER BY expires LIMIT most FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS gone = ROW_COUNT;
  FOR found IN SELECT partition, name FROM S.sets WHERE expires <= now LIMIT most LOOP
    IF pg_try_advisory_xact_lock(S.lock_of(found.partition)) THEN PERFORM S.open_set(found.partition, found.name, now); END IF;
  END LOOP;
  FOR found IN SELECT partition, name FROM S.logs WHERE expires <= now LIMIT most LOOP
    IF pg_try_advisory_xact_lock(S.lock_of(found.partition)) THEN PERFORM S.open_log(found.partition, found.name, now); END IF;
  END LOOP;
  DELETE FROM S.nodes WHERE seen < now - 60000;
  DELETE FROM S.letters WHERE node NOT IN (SELECT node FROM S.nodes);
  RETURN gone = most;
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

/** Creates missing tables and functions. Requires the privileges of the schema's owner. */
export const schemaOf = (schema: string): string => `
BEGIN;
SELECT pg_advisory_xact_lock(hashtextextended('${schema}', 1));
DO $$ BEGIN IF to_regnamespace('"${schema}"') IS NULL THEN CREATE SCHEMA "${schema}"; END IF; END $$;
${[TABLES, STORE, BUS, OTHERS, FIRST]
  .join('')
  .replaceAll('S.', `"${schema}".`)
  .replaceAll(/(?<=')S(?=[ '])/g, schema)}
COMMIT`
