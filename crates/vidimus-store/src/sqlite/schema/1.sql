-- Version 1. Times are milliseconds since 1970-01-01T00:00:00Z.

-- The audit log. `json` and `signature` are the exact bytes of the line.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    ts INTEGER NOT NULL,
    json TEXT NOT NULL,
    signature TEXT NOT NULL
) STRICT;

-- Issued certificates, in the order of issue. `id` has no gaps, so the greatest is their number.
CREATE TABLE certificate (
    id INTEGER PRIMARY KEY,
    serial BLOB NOT NULL UNIQUE,
    audit_seq INTEGER NOT NULL,
    issued_at INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    not_after INTEGER NOT NULL,
    profile TEXT NOT NULL,
    requester TEXT NOT NULL,
    subject TEXT NOT NULL,
    ski_hex TEXT NOT NULL,
    names TEXT NOT NULL,
    der BLOB NOT NULL
) STRICT;

CREATE INDEX certificate_by_profile ON certificate (profile, id);

CREATE TABLE config (
    generation INTEGER PRIMARY KEY,
    audit_seq INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    digest TEXT NOT NULL,
    yaml TEXT NOT NULL
) STRICT;

CREATE TABLE identity (
    id INTEGER PRIMARY KEY,
    audit_seq INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('awaiting', 'current', 'past')),
    key_file TEXT NOT NULL,
    csr_der BLOB,
    chain_pem TEXT,
    created_at INTEGER NOT NULL,
    activated_at INTEGER,
    CHECK (state <> 'current' OR chain_pem IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX identity_at_most_one ON identity (state) WHERE state <> 'past';

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- What was recorded stays recorded, whatever a later version of the program may try.
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is never changed'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is never changed'); END;
CREATE TRIGGER certificate_no_update BEFORE UPDATE ON certificate
BEGIN SELECT RAISE(ABORT, 'a recorded certificate is never changed'); END;
CREATE TRIGGER certificate_no_delete BEFORE DELETE ON certificate
BEGIN SELECT RAISE(ABORT, 'a recorded certificate is never changed'); END;
