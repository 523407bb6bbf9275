//! Typed client of the node's management API.
