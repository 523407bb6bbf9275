//! What survives: interrupted writes, readers beside a writer, second processes.

#[cfg(test)]
mod bundle;
#[cfg(test)]
mod child;
#[cfg(test)]
mod dir;
#[cfg(test)]
mod durable;
#[cfg(test)]
mod lock;
#[cfg(test)]
mod read;
