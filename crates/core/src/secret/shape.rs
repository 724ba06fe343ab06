//! Tokens that are known by their shape: the keys that providers hand out, private keys, passwords in
//! addresses, and what is assigned to something that is called a password.
//!
//! A shape is a prefix that is quick to find and a test of what follows it. A test looks at the text up
//! to a limit of its own and never goes back on its word: where it cannot tell because the text ends, it
//! says so, and whoever streams waits for more. So what is found does not depend on how a text is cut.
//!
//! A shape has to be told from ordinary text. Words in kebab case, hashes, `sk-learn` and examples from
//! manuals stay what they are. A secret without a shape (a password alone, the secret half of a pair of
//! keys without its name) is not found here.

mod assigned;
mod key_block;
mod rule;
mod token;
mod wrapped;

use std::ops::Range;
use std::sync::LazyLock;

use self::rule::Rule;
use self::token::{Body, is_word_byte};
use super::finder::Finder;

/// Whether more may follow a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is all there is.
    Here,
    /// More may come.
    Later,
}

/// What follows a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No secret.
    No,
    /// The text ends too early to tell.
    More,
    /// A secret.
    Secret(Token),
}

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// What kind of secret it is.
    pub(super) kind: &'static str,
    /// Where it is.
    pub(super) span: Range<usize>,
    /// What tells it from others of its kind without telling anything of a weak one.
    pub(super) tag: u64,
}

/// What a text holds from a place on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<S> {
    /// Nothing.
    Clear,
    /// A secret.
    Found(S),
    /// From here on it cannot be told before there is more.
    Open(usize),
}

struct Shape {
    prefix: &'static str,
    kind: &'static str,
    left: Left,
    test: Test,
}

/// What may come before a prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Anything: the prefix is no part of a word itself.
    Any,
    /// No part of a word.
    NoWord,
    /// One of these.
    Behind(&'static [u8]),
}

enum Test {
    Token(Body),
    /// An expression of the rule set.
    Rule(Box<Rule>),
    /// A JSON web token.
    WebToken,
    KeyBlock,
    /// `Bearer` and a token.
    Bearer,
    /// `Basic` and a user with a password in base64.
    Basic,
    /// An address with a password in it.
    Address,
    /// A name that ends like this, and what is assigned to it.
    Assigned(&'static [&'static str]),
}

const fn token(prefix: &'static str, kind: &'static str, body: Body) -> Shape {
    Shape { prefix, kind, left: Left::NoWord, test: Test::Token(body) }
}

const fn other(prefix: &'static str, kind: &'static str, left: Left, test: Test) -> Shape {
    Shape { prefix, kind, left, test }
}

/// A name is known by a part that two spellings share: `password` and `Password`.
const fn assigned(
    prefix: &'static str,
    kind: &'static str,
    behind: &'static [u8],
    endings: &'static [&'static str],
) -> Shape {
    Shape { prefix, kind, left: Left::Behind(behind), test: Test::Assigned(endings) }
}

/// Longer prefixes come before those they begin with.
static SHAPES: &[Shape] = &[
    token("sk-ant-", "anthropic_key", Body::dashed(20, 255)),
    token("sk-", "api_key", Body::opaque(20, 255)),
    token("sk_live_", "stripe_key", Body::plain(16, 255)),
    token("sk_test_", "stripe_key", Body::plain(16, 255)),
    token("rk_live_", "stripe_key", Body::plain(16, 255)),
    token("AIza", "google_key", Body::dashed(35, 35)),
    token("ghp_", "github_token", Body::plain(36, 255)),
    token("gho_", "github_token", Body::plain(36, 255)),
    token("ghu_", "github_token", Body::plain(36, 255)),
    token("ghs_", "github_token", Body::plain(36, 255)),
    token("ghr_", "github_token", Body::plain(36, 255)),
    token("github_pat_", "github_token", Body::underscored(40, 255)),
    token("glpat-", "gitlab_token", Body::dotted(20, 255)),
    token("xoxa-", "slack_token", Body::dashed(20, 255)),
    token("xoxb-", "slack_token", Body::dashed(20, 255)),
    token("xoxp-", "slack_token", Body::dashed(20, 255)),
    token("xoxr-", "slack_token", Body::dashed(20, 255)),
    token("xoxs-", "slack_token", Body::dashed(20, 255)),
    token("AKIA", "aws_key_id", Body::capitals(16, 16)),
    token("ASIA", "aws_key_id", Body::capitals(16, 16)),
    token("npm_", "npm_token", Body::plain(36, 36)),
    token("pypi-AgE", "pypi_token", Body::dashed(50, 511)),
    token("hf_", "huggingface_token", Body::plain(30, 64)),
    token("dop_v1_", "digitalocean_token", Body::plain(64, 64)),
    token("GOCSPX-", "google_client_secret", Body::dashed(20, 64)),
    token("ya29.", "google_token", Body::dotted(20, 2000)),
    token("tvly-", "tavily_key", Body::dashed(20, 64)),
    token("GR1348941", "gitlab_token", Body::dashed(16, 40)),
    token("ATBB", "bitbucket_password", Body::plain(28, 40)),
    token("ATAT", "atlassian_token", Body::dashed(40, 400)),
    token("nfp_", "netlify_token", Body::plain(30, 64)),
    token("dapi", "databricks_token", Body::plain(32, 36)),
    token("xapp-", "slack_token", Body::dashed(30, 255)),
    token("whsec_", "webhook_secret", Body::plain(24, 64)),
    token("sq0csp-", "square_secret", Body::dashed(40, 64)),
    token("FLWSECK-", "flutterwave_key", Body::dashed(20, 64)),
    token("rzp_live_", "razorpay_key", Body::plain(14, 32)),
    token("dp.st.", "doppler_token", Body::dotted(30, 80)),
    token("NRAK-", "new_relic_key", Body::plain(20, 40)),
    token("NRII-", "new_relic_key", Body::dashed(20, 40)),
    token("sntrys_", "sentry_token", Body::underscored(40, 400)),
    token("sqp_", "sonar_token", Body::plain(40, 40)),
    token("squ_", "sonar_token", Body::plain(40, 40)),
    token("sqa_", "sonar_token", Body::plain(40, 40)),
    token("EAAG", "facebook_token", Body::plain(60, 400)),
    token("sk.eyJ", "mapbox_token", Body::dotted(40, 400)),
    token("tfp_", "typeform_token", Body::dashed(40, 80)),
    token("aio_", "adafruit_key", Body::plain(28, 28)),
    token("tskey-", "tailscale_key", Body::dashed(20, 80)),
    token("pcsk_", "pinecone_key", Body::underscored(40, 80)),
    token("rnd_", "render_key", Body::plain(28, 40)),
    token("AGE-PLUGIN-", "age_key", Body::dashed(40, 200)),
    token("oy2", "nuget_key", Body::plain(43, 43)),
    token("LTAI", "alibaba_key_id", Body::plain(16, 24)),
    token("AKID", "tencent_key_id", Body::plain(32, 32)),
    token("hooks.slack.com/services/", "slack_webhook", Body::path(30, 80)),
    token("discord.com/api/webhooks/", "discord_webhook", Body::path(60, 120)),
    token("base64:", "base64_key", Body::base64(44, 44)),
    other("Authorization: token ", "bearer_token", Left::NoWord, Test::Bearer),
    other("authorization: token ", "bearer_token", Left::NoWord, Test::Bearer),
    other("eyJ", "web_token", Left::NoWord, Test::WebToken),
    other("-----BEGIN ", "private_key", Left::Any, Test::KeyBlock),
    other("Bearer ", "bearer_token", Left::NoWord, Test::Bearer),
    other("bearer ", "bearer_token", Left::NoWord, Test::Bearer),
    other("Authorization: Basic ", "basic_password", Left::NoWord, Test::Basic),
    other("authorization: Basic ", "basic_password", Left::NoWord, Test::Basic),
    other("authorization: basic ", "basic_password", Left::NoWord, Test::Basic),
    other("://", "url_password", Left::Any, Test::Address),
    assigned("assw", "password", b"pP", &["ord", "d"]),
    assigned("ASSW", "password", b"P", &["ORD", "D"]),
    assigned(
        "ecret",
        "secret_value",
        b"sS",
        &["", "_key", "-key", "Key", "_access_key", "AccessKey"],
    ),
    assigned("ECRET", "secret_value", b"S", &["", "_KEY", "_ACCESS_KEY"]),
    assigned("pi_key", "api_key", b"aA", &[""]),
    assigned("pi-key", "api_key", b"aA", &[""]),
    assigned("piKey", "api_key", b"aA", &[""]),
    assigned("pikey", "api_key", b"aA", &[""]),
    assigned("PI_KEY", "api_key", b"A", &[""]),
    assigned("pi-Key", "api_key", b"aA", &[""]),
    assigned("_KEY", "key_value", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", &[""]),
    assigned("_PAT", "token_value", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", &[""]),
    assigned("ccountKey", "key_value", b"aA", &[""]),
    assigned("rivateKey", "key_value", b"pP", &[""]),
    assigned("ey-data", "key_value", b"k", &[""]),
    assigned("Pwd", "password", b";, \t\n\"'{", &[""]),
    assigned("pwd", "password", b";, \t\n\"'{", &[""]),
    assigned("oken", "token_value", b"tT", &[""]),
    assigned("OKEN", "token_value", b"T", &[""]),
];

static PREFIXES: LazyLock<Prefixes> = LazyLock::new(|| Prefixes::new(rule::shapes()));

/// All shapes, found by what they begin with.
struct Prefixes {
    finder: Finder,
    /// The shapes of the rule set that no shape of ours covers.
    rules: Vec<Shape>,
    /// The shapes that begin where a prefix was found, by their numbers: its own, and shorter ones.
    shapes: Vec<Vec<usize>>,
}

impl Prefixes {
    fn new(rules: impl Iterator<Item = Shape>) -> Self {
        let is_covered = |rule: &Shape| {
            let covers =
                |shape: &&Shape| rule.covers(shape) && matches!(shape.test, Test::Token(_));
            SHAPES.iter().find(covers).is_some()
        };
        let rules: Vec<Shape> = rules.filter(|rule| !is_covered(rule)).collect();
        let all = || SHAPES.iter().chain(&rules);
        let covered = |found: &Shape| {
            let begins = |(number, shape): (usize, &Shape)| found.covers(shape).then_some(number);
            all().enumerate().filter_map(begins).collect()
        };
        let shapes = all().map(covered).collect();
        let finder = Finder::new(all().map(|shape| shape.prefix.to_owned()).collect());
        Self { finder, rules, shapes }
    }

    fn all(&self) -> impl Iterator<Item = &Shape> {
        SHAPES.iter().chain(&self.rules)
    }

    fn shape(&self, number: usize) -> Option<&Shape> {
        SHAPES.get(number).or_else(|| self.rules.get(number.checked_sub(SHAPES.len())?))
    }
}

/// Finds the first token from a place on.
pub(super) fn next(text: &str, from: usize, end: End) -> Step<Token> {
    let prefixes = &*PREFIXES;
    let open = match end {
        End::Here => None,
        End::Later => prefixes.finder.find_beginning(text.as_bytes(), from, |place, word| {
            prefixes.all().any(|shape| shape.prefix == word && shape.may_begin(text, place))
        }),
    };
    let mut place = from;
    while let Some(found) = prefixes.finder.find(text.as_bytes(), place) {
        if open.is_some_and(|open| open <= found.start) {
            break;
        }
        let numbers = prefixes.shapes.get(found.word).map(Vec::as_slice).unwrap_or_default();
        let shapes = numbers.iter().filter_map(|number| prefixes.shape(*number));
        match first(shapes, text, found.start, end) {
            Verdict::Secret(token) => return Step::Found(token),
            Verdict::More => return Step::Open(found.start),
            Verdict::No => place = found.start + 1,
        }
    }
    open.map_or(Step::Clear, Step::Open)
}

/// Says whether a token, with its prefix, begins at a place.
fn at(text: &str, place: usize, end: End) -> Verdict {
    let rest = text.as_bytes().get(place..).unwrap_or_default();
    let begins = |shape: &&Shape| rest.starts_with(shape.prefix.as_bytes());
    first(PREFIXES.all().filter(begins), text, place, end)
}

/// Returns the verdict of the first of these shapes, whose prefixes stand at a place, that does not say no.
fn first<'s>(
    shapes: impl Iterator<Item = &'s Shape>,
    text: &str,
    place: usize,
    end: End,
) -> Verdict {
    for shape in shapes {
        if !shape.may_begin(text, place) {
            continue;
        }
        match shape.judge(text, place, end) {
            Verdict::No => {}
            verdict => return verdict,
        }
    }
    Verdict::No
}

impl Shape {
    /// Tells whether another begins wherever this one does.
    fn covers(&self, other: &Self) -> bool {
        self.prefix.starts_with(other.prefix)
    }

    fn may_begin(&self, text: &str, place: usize) -> bool {
        match self.left {
            Left::Any => true,
            Left::NoWord => !is_inside_word(text, place),
            Left::Behind(any) => {
                let before = text.as_bytes().get(..place).and_then(<[u8]>::last);
                before.is_some_and(|byte| any.contains(byte))
            }
        }
    }

    fn judge(&self, text: &str, place: usize, end: End) -> Verdict {
        let body = place + self.prefix.len();
        match &self.test {
            Test::Token(kind) => kind.judge(self.kind, text, place, body, end),
            Test::Rule(rule) => rule.judge(self.kind, text, place, end),
            Test::WebToken => token::web_token(self.kind, text, place, end),
            Test::KeyBlock => key_block::judge(self.kind, text, place, body, end),
            Test::Bearer => wrapped::bearer(self.kind, text, body, end),
            Test::Basic => wrapped::basic(self.kind, text, body, end),
            Test::Address => wrapped::address(self.kind, text, body, end),
            Test::Assigned(endings) => assigned::judge(self.kind, endings, text, place, body, end),
        }
    }
}

/// Tells whether a place is in the middle of a word. What is written for another character (`\n` for a
/// line break, `%20` for a blank, the codes of colours) is no part of one.
fn is_inside_word(text: &str, place: usize) -> bool {
    let before = text.as_bytes().get(..place).unwrap_or_default();
    before.last().is_some_and(|byte| is_word_byte(*byte)) && !ends_with_escape(before)
}

/// How many bytes before a place decide about what begins there.
pub(super) const LOOKS_BACK: usize = 16;

fn ends_with_escape(before: &[u8]) -> bool {
    let is_hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    match before {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [rest @ .., high, low] if is_hex(&[*high, *low]) && rest.ends_with(b"%") => true,
        [rest @ .., _, _, _, _]
            if rest.ends_with(b"\\u") && before.get(rest.len()..).is_some_and(is_hex) =>
        {
            true
        }
        [rest @ .., b'm'] => {
            let code = rest.iter().rev().take(LOOKS_BACK - 3);
            let code = code.take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
            rest.get(..rest.len() - code).is_some_and(|rest| rest.ends_with(b"\x1b["))
        }
        _ => false,
    }
}

/// Makes a number of bytes that is the same everywhere.
pub(super) fn tag<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> u64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const FACTOR: u64 = 0x0000_0100_0000_01b3;
    parts
        .into_iter()
        .flatten()
        .fold(START, |tag, byte| (tag ^ u64::from(*byte)).wrapping_mul(FACTOR))
}

#[cfg(test)]
mod assigned_tests;
#[cfg(test)]
mod tests;
