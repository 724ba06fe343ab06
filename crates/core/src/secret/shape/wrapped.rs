//! Secrets that are known by what stands around them.

use super::token::{is_example, run, secret};
use super::{End, Step, Token, Verdict, at, next, tag};

/// No token in a header is longer.
const LONGEST_TOKEN: usize = 4 * 1024;
const LONGEST_USER: usize = 128;
const LONGEST_PASSWORD: usize = 256;
const LONGEST_HOST: usize = 255;
/// A shorter one is a word from a manual, or no secret to anybody.
const SHORTEST_PASSWORD: usize = 6;
/// Words that stand in manuals where a password would be.
const NO_PASSWORDS: [&[u8]; 6] =
    [b"password", b"passwd", b"passw0rd", b"secret", b"token", b"apikey"];

/// Judges the token after `Bearer`. One that has a shape of its own keeps that.
pub(super) fn bearer(kind: &'static str, text: &str, from: usize, end: End) -> Verdict {
    const SHORTEST: usize = 16;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    let Some(run) = run(text, from, LONGEST_TOKEN, is_letter) else { return Verdict::No };
    if run.reaches_the_end && end == End::Later {
        return Verdict::More;
    }
    let word = run.bytes.strip_suffix(b".").unwrap_or(run.bytes);
    let has = |test: fn(&u8) -> bool| word.iter().any(test);
    let is_token = word.len() >= SHORTEST
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !is_example(word);
    if is_token { own_shape(kind, text, from, word.len(), [word]) } else { Verdict::No }
}

/// Judges what follows `Basic` in a header: base64 to its padding.
pub(super) fn basic(kind: &'static str, text: &str, from: usize, end: End) -> Verdict {
    const SHORTEST: usize = 8;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    let Some(word) = run(text, from, LONGEST_TOKEN, is_letter) else { return Verdict::No };
    let padding = match text.as_bytes().get(from + word.bytes.len()..) {
        Some([b'=', b'=', ..]) => 2,
        Some([b'='] | []) if end == End::Later => return Verdict::More,
        Some([b'=', ..]) => 1,
        _ => 0,
    };
    let length = word.bytes.len() + padding;
    let is_word = word.bytes.iter().all(u8::is_ascii_lowercase);
    if length < SHORTEST || !length.is_multiple_of(4) || is_word || is_example(word.bytes) {
        return Verdict::No;
    }
    own_shape(kind, text, from, length, [word.bytes])
}

/// Judges `user:password@host` after `://`. Only the password is the secret; it is told from others by
/// whose it is, since a weak one could be guessed from a number that was made of it.
pub(super) fn address(kind: &'static str, text: &str, from: usize, end: End) -> Verdict {
    let may_stand_in_user =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte);
    let byte = |at: usize| text.as_bytes().get(at);
    let Some(user) = run(text, from, LONGEST_USER, may_stand_in_user) else { return Verdict::No };
    let password_from = from + user.bytes.len() + 1;
    match byte(password_from - 1) {
        None if end == End::Later => return Verdict::More,
        Some(b':') => {}
        _ => return Verdict::No,
    }
    let in_password = |byte: u8| may_stand_in_user(byte) || byte == b':';
    let Some(password) = run(text, password_from, LONGEST_PASSWORD, in_password) else {
        return Verdict::No;
    };
    let host_from = password_from + password.bytes.len() + 1;
    match byte(host_from - 1) {
        None if end == End::Later => return Verdict::More,
        Some(b'@') => {}
        _ => return Verdict::No,
    }
    let in_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let Some(host) = run(text, host_from, LONGEST_HOST, in_host) else { return Verdict::No };
    if host.reaches_the_end && end == End::Later {
        return Verdict::More;
    }
    if !is_password(password.bytes, user.bytes) {
        return Verdict::No;
    }
    let named = text.get(from..password_from - 1).unwrap_or_default();
    if let Step::Found(_) = next(named, 0, End::Here) {
        // Some hosts take a token in the place of the user. Then both are one secret.
        return secret(kind, text, from..host_from - 1);
    }
    let owner = [user.bytes, b"@", host.bytes];
    own_shape(kind, text, password_from, password.bytes.len(), owner)
}

fn is_password(password: &[u8], user: &[u8]) -> bool {
    let says_so = |word: &&[u8]| password.eq_ignore_ascii_case(word);
    password.len() >= SHORTEST_PASSWORD
        && password != user
        && !password.starts_with(b"$")
        && !password.starts_with(b"%")
        && !NO_PASSWORDS.iter().any(says_so)
        && !is_example(password)
}

/// A token that has a shape is called by that shape, wherever it stands.
pub(super) fn own_shape<'b>(
    kind: &'static str,
    text: &str,
    from: usize,
    length: usize,
    parts: impl IntoIterator<Item = &'b [u8]>,
) -> Verdict {
    let span = from..from + length;
    let alone = text.get(..span.end).unwrap_or(text);
    match at(alone, from, End::Here) {
        Verdict::Secret(token) if token.span == span => Verdict::Secret(token),
        _ => Verdict::Secret(Token { kind, tag: tag(parts), span }),
    }
}
