//! What the programs for the conformance suite share.

pub mod fixture;
