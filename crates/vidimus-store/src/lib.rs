//! Certificates, audit log and config in one database.
