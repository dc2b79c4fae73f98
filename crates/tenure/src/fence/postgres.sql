-- Tenure's fence for PostgreSQL: a table, and functions that admit a token or end the transaction.
--
-- One statement, which may be run again and by several clients at once: nothing that is there is lost.
-- A role that writes under the fence needs no more than
--     GRANT USAGE ON SCHEMA tenure TO writers;
--     GRANT SELECT, INSERT, UPDATE ON tenure.fence TO writers;

DO $install$
BEGIN

PERFORM pg_advisory_xact_lock(hashtextextended('tenure.fence', 0));

IF to_regnamespace('tenure') IS NULL THEN
    CREATE SCHEMA tenure;
END IF;

IF to_regclass('tenure.fence') IS NULL THEN
    -- The newest token that was admitted, for each resource. To delete a row is to forget: an old leader may write again.
    CREATE TABLE tenure.fence (
        resource text        PRIMARY KEY,
        rule     text        NOT NULL CHECK (rule IN ('by_term', 'in_order')),
        term     numeric(20) NOT NULL CHECK (term > 0),
        number   numeric(20) NOT NULL CHECK (number >= 0),
        writer   text        CHECK ((writer IS NULL) = (rule = 'by_term'))
    );
END IF;

-- Admits a token, given as term and number, and stores it: 'newer', 'same_term' or 'again'. Otherwise it raises TN001
-- (stale), TN002 (the resource has the other rule) or TN003 (not a token, a resource or a writer).
--
-- Reading without a lock chooses the way; what decides is read again under one. A stored token never goes back, so one
-- that is too new is too new, locked or not. A row that changed meanwhile is looked at again, or, in transactions that
-- see one snapshot, ends the transaction by a serialization failure.
CREATE OR REPLACE FUNCTION tenure.admit(
    to_resource text, by_rule text, new_term numeric, new_number numeric, from_writer text
) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $admit$
DECLARE
    largest CONSTANT numeric := 18446744073709551615;
    newest  tenure.fence;
BEGIN
    IF new_term IS NULL OR new_term < 1 OR new_term > largest OR new_term <> trunc(new_term)
        OR new_number IS NULL OR new_number < 0 OR new_number > largest OR new_number <> trunc(new_number)
    THEN
        RAISE 'not a token of any term' USING ERRCODE = 'TN003',
            HINT = 'Packed tokens are at least 2^32 and go to admit_by_term and admit_in_order, '
                'wide ones are at least 2^64 and go to the functions that end in _wide.';
    END IF;
    IF to_resource IS NULL OR by_rule IS NULL OR (by_rule = 'in_order') <> (from_writer IS NOT NULL) THEN
        RAISE 'a fence needs the name of its resource, and in order that of the writer' USING ERRCODE = 'TN003';
    END IF;
    LOOP
        SELECT * INTO newest FROM tenure.fence f WHERE f.resource = to_resource;
        IF NOT FOUND THEN
            -- Of two that come first, one waits here until the other's transaction has ended.
            INSERT INTO tenure.fence (resource, rule, term, number, writer)
                VALUES (to_resource, by_rule, new_term, new_number, from_writer)
                ON CONFLICT DO NOTHING;
            IF FOUND THEN RETURN 'newer'; END IF;

        ELSIF newest.rule <> by_rule THEN
            RAISE 'resource "%" is fenced by the other rule, %', to_resource, newest.rule USING ERRCODE = 'TN002';

        ELSIF by_rule = 'by_term' AND new_term = newest.term THEN
            -- Shared: writes of one leader go on side by side, and a newer leader waits until they have ended.
            PERFORM FROM tenure.fence f WHERE f.resource = to_resource AND f.term = new_term FOR SHARE;
            IF FOUND THEN RETURN 'same_term'; END IF;

        ELSIF (new_term, new_number) > (newest.term, newest.number) THEN
            UPDATE tenure.fence f SET term = new_term, number = new_number, writer = from_writer
                WHERE f.resource = to_resource AND f.rule = by_rule
                    AND (f.term, f.number) < (new_term, new_number)
                    AND (by_rule = 'in_order' OR f.term < new_term);
            IF FOUND THEN RETURN 'newer'; END IF;

        ELSIF by_rule = 'in_order' AND (new_term, new_number, from_writer) = (newest.term, newest.number, newest.writer)
        THEN
            PERFORM FROM tenure.fence f
                WHERE f.resource = to_resource AND (f.term, f.number, f.writer) = (new_term, new_number, from_writer)
                FOR NO KEY UPDATE;
            IF FOUND THEN RETURN 'again'; END IF;

        ELSE
            RAISE 'refused: edict % of term % was admitted to "%" already', newest.number, newest.term, to_resource
                USING ERRCODE = 'TN001', DETAIL = newest.term * (largest + 1) + newest.number;
        END IF;
    END LOOP;
END
$admit$;

-- Packed tokens: 31 bits of term, 32 bits of number.
CREATE OR REPLACE FUNCTION tenure.admit_by_term(resource text, token bigint) RETURNS text LANGUAGE sql AS
    $$ SELECT tenure.admit($1, 'by_term', $2 >> 32, $2 & 4294967295, NULL) $$;

CREATE OR REPLACE FUNCTION tenure.admit_in_order(resource text, token bigint, writer text)
    RETURNS text LANGUAGE sql AS
    $$ SELECT tenure.admit($1, 'in_order', $2 >> 32, $2 & 4294967295, $3) $$;

-- Wide tokens: 64 bits of each. Both forms are stored in the same way, and compare.
CREATE OR REPLACE FUNCTION tenure.admit_by_term_wide(resource text, token numeric) RETURNS text LANGUAGE sql AS
    $$ SELECT tenure.admit($1, 'by_term', div($2, 18446744073709551616), mod($2, 18446744073709551616), NULL) $$;

CREATE OR REPLACE FUNCTION tenure.admit_in_order_wide(resource text, token numeric, writer text)
    RETURNS text LANGUAGE sql AS
    $$ SELECT tenure.admit($1, 'in_order', div($2, 18446744073709551616), mod($2, 18446744073709551616), $3) $$;

END
$install$;
