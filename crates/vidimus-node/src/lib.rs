//! The CA node: config, ceremony, issuing, management API.
