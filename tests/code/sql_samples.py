"""SQL of real kind: statements that are right in SQLite, in PostgreSQL, in MySQL and in SQL Server."""

SQLITE = """
CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT NOT NULL UNIQUE, name TEXT NOT NULL DEFAULT 'x');
CREATE TABLE IF NOT EXISTS teams (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT COLLATE NOCASE, "order" INTEGER);
CREATE TABLE leave_requests (
  id INTEGER PRIMARY KEY, -- a key, the row's own; isn't it
  employee_id INTEGER NOT NULL REFERENCES employees(id) ON DELETE CASCADE,
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'rejected')),
  days REAL NOT NULL CHECK (days > 0),
  created_at TEXT NOT NULL DEFAULT (datetime('now')),
  CONSTRAINT fk_employee FOREIGN KEY (employee_id) REFERENCES employees (id) DEFERRABLE INITIALLY DEFERRED,
  UNIQUE (employee_id, status) ON CONFLICT REPLACE
);
CREATE TABLE pairs (a TEXT, b TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE strict_one (a INTEGER NOT NULL, b ANY) STRICT;
CREATE TABLE typed (a VARCHAR(255), b DECIMAL(10, 2), c UNSIGNED BIG INT, d DOUBLE PRECISION, e NATIVE CHARACTER(70));
CREATE TABLE made (x INTEGER, y INTEGER GENERATED ALWAYS AS (x * 2) STORED, z INT AS (x + 1));
CREATE TABLE odd_names ([group] TEXT, `select` TEXT, "table" TEXT, key TEXT, value TEXT, desc TEXT, date DATE);
CREATE TABLE loose (a, b, c DEFAULT -1, d DEFAULT +2.5e3, e DEFAULT CURRENT_TIMESTAMP, f DEFAULT NULL, g DEFAULT TRUE);
CREATE TABLE copy AS SELECT * FROM users WHERE id > 3;
CREATE TABLE constrained (a INT CONSTRAINT positive CHECK (a > 0), b INT CONSTRAINT filled NOT NULL, CHECK (a < b));
CREATE TABLE no_comma (a INT, b INT, CHECK (a > 0) UNIQUE (a, b));
CREATE TEMP TABLE scratch (line TEXT);
CREATE VIRTUAL TABLE search USING fts5(title, body, tokenize = 'porter unicode61', content='');
CREATE VIRTUAL TABLE places USING rtree(id, minx, maxx);
CREATE UNIQUE INDEX IF NOT EXISTS idx_open ON leave_requests (employee_id, lower(status)) WHERE status = 'pending';
CREATE INDEX by_name ON users (name COLLATE NOCASE DESC);
CREATE VIEW active AS SELECT id, name FROM users WHERE name IS NOT NULL;
CREATE TRIGGER stamp AFTER UPDATE ON users FOR EACH ROW WHEN old.name <> new.name BEGIN
  UPDATE users SET name = CASE WHEN new.name = '' THEN 'none' ELSE new.name END WHERE id = new.id;
  INSERT INTO log (line) VALUES ('changed; again');
  SELECT RAISE(ABORT, 'no') WHERE new.name IS NULL;
END;
CREATE TRIGGER IF NOT EXISTS kept INSTEAD OF DELETE ON active BEGIN SELECT 1; END;
DROP TABLE IF EXISTS users;
DROP INDEX by_name;
ALTER TABLE users ADD COLUMN phone TEXT NOT NULL DEFAULT '' CHECK (length(phone) < 20);
ALTER TABLE users RENAME TO people;
ALTER TABLE users RENAME COLUMN name TO full_name;
ALTER TABLE users DROP COLUMN phone;
INSERT INTO users (id, email, name) VALUES (1, 'a@b.c', 'it''s; fine'), (2, 'd@e.f', '--no comment');
INSERT INTO users VALUES (?, ?, ?);
INSERT INTO users (email) VALUES (:email) ON CONFLICT (email) DO UPDATE SET name = excluded.name WHERE 1 RETURNING id;
INSERT OR IGNORE INTO users (email, name) VALUES (@email, $name);
INSERT INTO users (email) VALUES ('x') ON CONFLICT DO NOTHING;
INSERT INTO users DEFAULT VALUES;
INSERT INTO users (id, email) SELECT id, mail FROM old_users;
INSERT INTO t ("group", `order`) VALUES (1, 2);
REPLACE INTO settings (key, value) VALUES ('a', json('{"b": [1, 2]}'));
UPDATE users SET name = 'z', email = lower(email) WHERE id IN (SELECT user_id FROM orders WHERE total > 100);
UPDATE users SET (name, email) = (SELECT name, email FROM old WHERE old.id = users.id);
UPDATE users SET name = o.name FROM old AS o WHERE o.id = users.id;
DELETE FROM users WHERE id = ?1 AND name LIKE '%a\\_b%' ESCAPE '\\';
SELECT u.id, count(*) AS n FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.id HAVING n > 1 ORDER BY n;
SELECT DISTINCT name FROM users WHERE email GLOB '*@x.*' LIMIT 10 OFFSET 5;
SELECT name, row_number() OVER (PARTITION BY team ORDER BY score DESC) AS rank FROM players;
SELECT sum(x) FILTER (WHERE x > 0) OVER w FROM t WINDOW w AS (ORDER BY y ROWS BETWEEN 1 PRECEDING AND CURRENT ROW);
SELECT data ->> '$.name', data -> 'tags', json_extract(data, '$.a[0]') FROM docs, json_each(docs.data, '$.tags');
SELECT CASE a WHEN 1 THEN 'one' WHEN 2 THEN 'two' END, CAST(b AS INTEGER), x'00ff', 1e-3, .5, a || b FROM t;
SELECT * FROM a NATURAL JOIN b CROSS JOIN c USING (id) WHERE (x, y) IN (VALUES (1, 2), (3, 4)) AND z BETWEEN 1 AND 2;
SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3 ORDER BY 1;
SELECT EXISTS (SELECT 1 FROM users WHERE id = 1), (SELECT max(id) FROM users), NOT a, a IS NOT b, a ISNULL FROM t;
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10) SELECT x FROM n;
WITH a AS MATERIALIZED (SELECT 1 AS x), b AS (SELECT x FROM a) DELETE FROM t WHERE id IN (SELECT x FROM b);
VALUES (1, 'a'), (2, 'b');
EXPLAIN QUERY PLAN SELECT * FROM users;
PRAGMA foreign_keys = ON;
PRAGMA table_info(users);
BEGIN IMMEDIATE TRANSACTION;
SAVEPOINT one;
RELEASE one;
COMMIT;
ROLLBACK;
ANALYZE;
VACUUM;
REINDEX users;
ATTACH DATABASE ':memory:' AS other;
DETACH other;
"""

POSTGRES = r"""
\set ON_ERROR_STOP on
\c shop
CREATE EXTENSION IF NOT EXISTS "uuid-ossp";
CREATE TYPE status AS ENUM ('open', 'closed');
CREATE TABLE accounts (
  id BIGSERIAL PRIMARY KEY,
  uid UUID NOT NULL DEFAULT gen_random_uuid(),
  state status NOT NULL DEFAULT 'open',
  tags TEXT[] NOT NULL DEFAULT '{}',
  prices NUMERIC(10, 2)[],
  data JSONB NOT NULL DEFAULT '{}'::jsonb,
  at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT (now() AT TIME ZONE 'utc'),
  lasting INTERVAL DAY TO SECOND,
  name CHARACTER VARYING(80) COLLATE "de_DE" NOT NULL,
  full_name TEXT GENERATED ALWAYS AS (lower(name) || '!') STORED,
  number INT GENERATED BY DEFAULT AS IDENTITY (START WITH 10 INCREMENT BY 5),
  "order" INT, "user" TEXT,
  CONSTRAINT positive CHECK (number > 0) NO INHERIT,
  CONSTRAINT one UNIQUE NULLS NOT DISTINCT (uid, name),
  EXCLUDE USING gist (room WITH =, during WITH &&),
  FOREIGN KEY (owner_id) REFERENCES people (id) MATCH FULL ON UPDATE CASCADE ON DELETE SET NULL
) PARTITION BY RANGE (at);
CREATE TABLE accounts_2024 PARTITION OF accounts FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE empty ();
CREATE TABLE child (LIKE accounts INCLUDING ALL) INHERITS (base) WITH (fillfactor = 70) TABLESPACE fast;
CREATE INDEX CONCURRENTLY idx ON accounts USING gin (data jsonb_path_ops) WHERE data ? 'a';
CREATE OR REPLACE FUNCTION touch() RETURNS trigger AS $body$
BEGIN
  IF NEW.name IS NULL THEN RAISE EXCEPTION 'it''s, (empty'; END IF;
  NEW.at := now();
  RETURN NEW;
END;
$body$ LANGUAGE plpgsql;
CREATE FUNCTION plus(a int, b int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT a + b; END;
CREATE TRIGGER touched BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION touch();
DO $$ BEGIN PERFORM 1; END $$;
COPY accounts (id, name) FROM stdin;
1	it's (open
2	two;
\.
ALTER TABLE ONLY accounts ADD CONSTRAINT c CHECK (number < 10) NOT VALID, ALTER COLUMN name SET DEFAULT 'x';
INSERT INTO accounts (name, tags) VALUES ($1, ARRAY['a', 'b']), (E'it\'s', '{}') ON CONFLICT (name) DO UPDATE
  SET data = accounts.data || excluded.data RETURNING id;
INSERT INTO accounts OVERRIDING SYSTEM VALUE SELECT * FROM old;
SELECT data #>> '{a,b}', data @> '{"x": 1}', tags[1:2], at::date, count(*) FILTER (WHERE number > 1) FROM accounts
  WHERE name ILIKE '%x%' AND id = ANY ($1::int[]) AND at > now() - INTERVAL '1 day' FOR UPDATE SKIP LOCKED;
SELECT DISTINCT ON (name) name, lag(at) OVER (PARTITION BY name ORDER BY at) FROM accounts, LATERAL (SELECT 1) x;
WITH gone AS (DELETE FROM accounts WHERE id = $1 RETURNING *) INSERT INTO archive SELECT * FROM gone;
MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN UPDATE SET x = b.x WHEN NOT MATCHED THEN INSERT VALUES (b.id);
GRANT SELECT, INSERT ON accounts TO web;
COMMENT ON TABLE accounts IS 'a, (comment';
CREATE POLICY own ON accounts USING (owner = current_user) WITH CHECK (owner = current_user);
SELECT setval('accounts_id_seq', (SELECT max(id) FROM accounts));
"""

MYSQL = r"""
CREATE TABLE `orders` (
  `id` INT UNSIGNED NOT NULL AUTO_INCREMENT,
  `order` INT(11) DEFAULT '0' COMMENT 'it\'s the (order',
  `state` ENUM('a','b') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT "a",
  `at` DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (`id`),
  UNIQUE KEY `by_order` (`order`) USING BTREE,
  KEY `by_date` (`at`, `state`(10)),
  FULLTEXT KEY `words` (`note`),
  CONSTRAINT `fk` FOREIGN KEY (`user_id`) REFERENCES `users` (`id`) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4; # it's (a comment
INSERT IGNORE INTO orders (`order`, state) VALUES (1, 'it\'s'), (2, "b") ON DUPLICATE KEY UPDATE state = VALUES(state);
INSERT INTO orders SET state = 'a';
/*!40101 SET NAMES utf8 */;
LOCK TABLES `orders` WRITE;
DELIMITER //
CREATE PROCEDURE p(IN a INT) BEGIN IF a > 1 THEN SELECT 'it''s (; END IF; END //
DELIMITER ;
CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW BEGIN IF NEW.x THEN SET NEW.y = 1; END IF; END;
ALTER TABLE orders MODIFY COLUMN state VARCHAR(20) NOT NULL AFTER id, ADD INDEX by_state (state), DROP PRIMARY KEY;
SELECT SQL_CALC_FOUND_ROWS * FROM orders FORCE INDEX (by_order) WHERE a <=> NULL LIMIT 5, 10;
REPLACE INTO t VALUES (1), (2);
"""

TSQL = """
IF OBJECT_ID('dbo.users') IS NULL
CREATE TABLE [dbo].[users] (
  [id] INT IDENTITY(1,1) NOT NULL,
  [name] NVARCHAR(MAX) NULL CONSTRAINT [df] DEFAULT (N'x'),
  CONSTRAINT [pk] PRIMARY KEY CLUSTERED ([id] ASC),
)
GO
SELECT TOP 10 * FROM [dbo].[users] WITH (NOLOCK) WHERE [order] = @x
INSERT INTO users (name) OUTPUT inserted.id VALUES (N'it''s')
GO
"""
