//! What the node promises: config, ceremony, issuing, management API.

#[cfg(test)]
mod api;
#[cfg(test)]
mod apply;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod ceremony;
#[cfg(test)]
mod config;
#[cfg(test)]
mod house;
#[cfg(test)]
mod issuing;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod rotation;
#[cfg(test)]
mod start;
