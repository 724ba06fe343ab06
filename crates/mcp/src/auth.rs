//! How a remote server is told who asks: OAuth, with tokens that only their owner can read.
