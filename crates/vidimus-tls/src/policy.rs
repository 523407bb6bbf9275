//! Who may call: the allow-list on top of a verified certificate.

#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod allow_list;
mod layer;
mod refusal;

pub use allow_list::AllowList;
pub use layer::{AllowListFuture, AllowListLayer, AllowListService};
pub use refusal::PolicyRefusal;
pub(crate) use refusal::{log_refusal, respond};
