//! Shows that the admin endpoint answers over TCP and over a UNIX socket, and ends when asked.

#[cfg(test)]
mod admin;
