//! The token that clients have to send: from a file or a variable, never from the command line, where everybody
//! on the machine could read it. Without either, one is made for as long as the server runs.

use std::path::Path;

use rustix::rand::GetRandomFlags;

use crate::environment::Environment;
use crate::failure::Failure;
use crate::files;

/// Reads the token from a file: its first line.
pub(super) fn of_file(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let text = files::read(path).map_err(|error| {
        Failure::usage(format!("the token in `{shown}` cannot be read")).because(&error)
    })?;
    present(text.lines().next(), &format!("the file `{shown}`"))
}

/// Reads the token from a variable.
pub(super) fn of_variable(name: &str, environment: &Environment) -> Result<String, Failure> {
    let variables = environment.variables();
    present(variables.get(name).map(String::as_str), &format!("the variable {name}"))
}

/// Makes a token of 256 random bits.
pub(super) fn new() -> Result<String, Failure> {
    let mut bytes = [0_u8; 32];
    let filled = rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty());
    match filled {
        Ok(32) => Ok(bytes.iter().fold(String::new(), |token, byte| format!("{token}{byte:02x}"))),
        Ok(_) => Err(Failure::failed("cannot make a token: the kernel gave too few random bytes")),
        Err(error) => Err(Failure::failed("cannot make a token").because(&error)),
    }
}

fn present(token: Option<&str>, place: &str) -> Result<String, Failure> {
    let token = token.map(str::trim).filter(|token| !token.is_empty());
    token.map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("{place} holds no token"))
            .hint("a good one: head -c 32 /dev/urandom | base64")
    })
}
