//! The Anabranch server.
