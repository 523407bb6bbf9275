//! Shows that the admin endpoint answers over TCP and over a UNIX socket, and that a program ends
//! when it is asked.

#[cfg(test)]
mod admin;
#[cfg(test)]
mod signal;
