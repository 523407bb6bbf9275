//! The log's format, and that nothing can be done to a log unnoticed.

#[cfg(test)]
mod chain;
#[cfg(test)]
mod openssl;
#[cfg(test)]
mod verify;
