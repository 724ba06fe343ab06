//! What led to an error.

use std::error::Error;
use std::io;

/// Returns an error and everything that led to it, nearest first.
pub fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause_of(*error))
}

/// Finds an error of one type among them.
pub fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    chain(error).find_map(|cause| cause.downcast_ref())
}

fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>() {
        // An I/O error speaks for the error inside it and skips that one as a source.
        Some(outer) => outer.get_ref().map(|inner| -> &(dyn Error + 'static) { inner }),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_inside_an_io_error_is_not_skipped() {
        let inner = "x".parse::<u8>().unwrap_err();
        let outer = io::Error::other(io::Error::other(inner.clone()));
        assert_eq!(find::<std::num::ParseIntError>(&outer), Some(&inner));
        assert_eq!(chain(&outer).count(), 3);
    }
}
