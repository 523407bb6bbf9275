//! What the store promises: the suite of every back end, and what is peculiar to SQLite, files and
//! processes.

#[cfg(test)]
mod child;
#[cfg(test)]
mod export;
#[cfg(test)]
mod files;
#[cfg(test)]
mod full;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod syncs;
#[cfg(test)]
mod verify;
