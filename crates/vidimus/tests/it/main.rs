//! Shows what the program does as a process: the quickstart, each command with its exit code, a CA that is killed.

#[cfg(test)]
mod commands;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod quickstart;
#[cfg(test)]
mod support;
