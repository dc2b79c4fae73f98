-- Tenure's fence for SQLite: a table, and views into which a token is inserted to have it admitted. The triggers on the
-- views admit it or undo the transaction. May be run again at any time: nothing that is there is lost.

-- The newest token that was admitted, for each resource, and as what. To delete a row is to forget: an old leader may
-- write again.
CREATE TABLE IF NOT EXISTS tenure_fence (
    resource TEXT    NOT NULL PRIMARY KEY,
    rule     TEXT    NOT NULL CHECK (rule IN ('by_term', 'in_order')),
    term     INTEGER NOT NULL CHECK (typeof(term) = 'integer' AND term > 0),
    number   INTEGER NOT NULL CHECK (typeof(number) = 'integer' AND number >= 0),
    writer   TEXT    CHECK ((writer IS NULL) = (rule = 'by_term')),
    admitted TEXT    NOT NULL CHECK (admitted IN ('newer', 'same_term', 'again'))
);

CREATE VIEW IF NOT EXISTS tenure_admit_by_term_wide AS
    SELECT resource, term, number FROM tenure_fence WHERE rule = 'by_term';

-- No ON CONFLICT and no OR in these triggers: that of the statement which fires them would take their place.
CREATE TRIGGER IF NOT EXISTS tenure_by_term_wide INSTEAD OF INSERT ON tenure_admit_by_term_wide
BEGIN
    SELECT RAISE(ROLLBACK, 'TN003: not a resource, or not a token of any term')
        WHERE typeof(NEW.resource) <> 'text' OR typeof(NEW.term) <> 'integer' OR typeof(NEW.number) <> 'integer'
            OR NEW.term < 1 OR NEW.number < 0;
    SELECT RAISE(ROLLBACK, 'TN002: this resource is fenced in order')
        FROM tenure_fence f WHERE f.resource = NEW.resource AND f.rule <> 'by_term';
    SELECT RAISE(ROLLBACK, 'TN001: refused, a newer term was admitted already')
        FROM tenure_fence f WHERE f.resource = NEW.resource AND f.term > NEW.term;
    UPDATE tenure_fence
        SET admitted = iif(term < NEW.term, 'newer', 'same_term'),
            number = iif(term < NEW.term, NEW.number, max(number, NEW.number)),
            term = NEW.term
        WHERE resource = NEW.resource;
    INSERT INTO tenure_fence (resource, rule, term, number, admitted)
        SELECT NEW.resource, 'by_term', NEW.term, NEW.number, 'newer'
            WHERE NOT EXISTS (SELECT 1 FROM tenure_fence f WHERE f.resource = NEW.resource);
END;

CREATE VIEW IF NOT EXISTS tenure_admit_in_order_wide AS
    SELECT resource, term, number, writer FROM tenure_fence WHERE rule = 'in_order';

CREATE TRIGGER IF NOT EXISTS tenure_in_order_wide INSTEAD OF INSERT ON tenure_admit_in_order_wide
BEGIN
    SELECT RAISE(ROLLBACK, 'TN003: not a resource or a writer, or not a token of any term')
        WHERE typeof(NEW.resource) <> 'text' OR typeof(NEW.writer) <> 'text'
            OR typeof(NEW.term) <> 'integer' OR typeof(NEW.number) <> 'integer' OR NEW.term < 1 OR NEW.number < 0;
    SELECT RAISE(ROLLBACK, 'TN002: this resource is fenced by term')
        FROM tenure_fence f WHERE f.resource = NEW.resource AND f.rule <> 'in_order';
    SELECT RAISE(ROLLBACK, 'TN001: refused, a newer edict was admitted already')
        FROM tenure_fence f
        WHERE f.resource = NEW.resource AND (f.term, f.number) >= (NEW.term, NEW.number)
            AND (f.term, f.number, f.writer) <> (NEW.term, NEW.number, NEW.writer);
    UPDATE tenure_fence
        SET admitted = iif((term, number) < (NEW.term, NEW.number), 'newer', 'again'),
            term = NEW.term, number = NEW.number, writer = NEW.writer
        WHERE resource = NEW.resource;
    INSERT INTO tenure_fence (resource, rule, term, number, writer, admitted)
        SELECT NEW.resource, 'in_order', NEW.term, NEW.number, NEW.writer, 'newer'
            WHERE NOT EXISTS (SELECT 1 FROM tenure_fence f WHERE f.resource = NEW.resource);
END;

-- Packed tokens: 31 bits of term, 32 bits of number. A negative one has a negative term.
CREATE VIEW IF NOT EXISTS tenure_admit_by_term AS
    SELECT resource, term << 32 | number AS token FROM tenure_fence WHERE rule = 'by_term';

CREATE TRIGGER IF NOT EXISTS tenure_by_term INSTEAD OF INSERT ON tenure_admit_by_term
BEGIN
    SELECT RAISE(ROLLBACK, 'TN003: not a packed token') WHERE typeof(NEW.token) <> 'integer';
    INSERT INTO tenure_admit_by_term_wide (resource, term, number)
        VALUES (NEW.resource, NEW.token >> 32, NEW.token & 4294967295);
END;

CREATE VIEW IF NOT EXISTS tenure_admit_in_order AS
    SELECT resource, term << 32 | number AS token, writer FROM tenure_fence WHERE rule = 'in_order';

CREATE TRIGGER IF NOT EXISTS tenure_in_order INSTEAD OF INSERT ON tenure_admit_in_order
BEGIN
    SELECT RAISE(ROLLBACK, 'TN003: not a packed token') WHERE typeof(NEW.token) <> 'integer';
    INSERT INTO tenure_admit_in_order_wide (resource, term, number, writer)
        VALUES (NEW.resource, NEW.token >> 32, NEW.token & 4294967295, NEW.writer);
END;
