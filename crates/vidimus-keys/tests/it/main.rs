//! Keys in their files: kept, opened again, and read by the openssl program.

#[cfg(test)]
mod file;
#[cfg(test)]
mod openssl;
#[cfg(test)]
mod secret;
