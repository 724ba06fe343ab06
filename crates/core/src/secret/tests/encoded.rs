//! Known secrets in the output of the usual tools.

use super::*;

/// As long as an Anthropic key, so that every tool breaks it.
const LONG: &str = "k3y-Zx81kQ0a7Bd93jfLq28vTn45_yWm6Pc/R+uHs0iEo1Dg2Kb7Xa9Vt4Nz8JfQl5Mr3Ce6Gw1Yp0Su2Ih\
                    4OkUx7BdT9vLn5Aq8Zj=z";
const SHORT: &str = "t0k3n/Ab+9=xyz77";

fn bytes(value: &str, write: impl Fn(u8) -> String, separator: &str) -> String {
    value.bytes().map(write).collect::<Vec<_>>().join(separator)
}

/// Breaks a text into lines.
fn wrap(text: &str, width: usize, prefix: &str) -> String {
    let lines = text
        .as_bytes()
        .chunks(width)
        .map(|line| format!("{prefix}{}\n", str::from_utf8(line).unwrap_or_default()));
    lines.collect()
}

/// Writes bytes as dumps do: offset, numbers in groups, characters.
fn dump(
    value: &[u8],
    offset: impl Fn(usize) -> String,
    group: usize,
    write: impl Fn(&[u8]) -> String,
    characters: impl Fn(&str) -> String,
) -> String {
    let line = |(number, line): (usize, &[u8])| {
        let shown: String = line
            .iter()
            .map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' })
            .collect();
        let numbers: Vec<String> = line.chunks(group).map(&write).collect();
        format!("{}{}{}\n", offset(number * 16), numbers.join(" "), characters(&shown))
    };
    value.chunks(16).enumerate().map(line).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

fn swapped(bytes: &[u8]) -> String {
    hex(&bytes.iter().rev().copied().collect::<Vec<_>>())
}

fn column(bytes: &[u8]) -> String {
    format!("  {}", char::from(bytes[0]))
}

/// Every text of the table with its name.
fn encodings(value: &str, before: &str) -> Vec<(&'static str, String)> {
    let whole = format!("{before}{value} and more");
    let raw = whole.as_bytes();
    let none = |_: &str| String::new();
    let base64 = STANDARD.encode(raw);
    let xxd = |at: usize| format!("{at:08x}: ");
    let od = |at: usize| format!("{at:07o} ");
    let mut texts = vec![
        ("wrapped raw", wrap(&whole, 40, "")),
        ("wrapped raw in a diff", wrap(&whole, 40, "+")),
        ("base64", base64.clone()),
        ("base64 -w 76", wrap(&base64, 76, "")),
        ("base64 -w 60 quoted", wrap(&base64, 60, "> ")),
        ("base64 with line numbers", wrap(&base64, 60, "12: ")),
        ("base64 indented", wrap(&base64, 20, "    ")),
        (
            "base64 in code",
            format!(
                "\"{}\"",
                base64
                    .as_bytes()
                    .chunks(50)
                    .map(|part| str::from_utf8(part).unwrap())
                    .collect::<Vec<_>>()
                    .join("\"\n  \"")
            ),
        ),
        (
            "base32",
            wrap(
                &form::forms(&whole)
                    .into_iter()
                    .find(|form| form.kind == " in base32")
                    .unwrap()
                    .text,
                76,
                "",
            ),
        ),
        ("xxd -p", wrap(&hex(raw), 60, "")),
        ("xxd", dump(raw, xxd, 2, hex, |shown| format!("  {shown}"))),
        ("xxd -c 8 -g 1", dump(raw, xxd, 1, hex, |shown| format!("  {shown}"))),
        (
            "xxd -u",
            dump(raw, xxd, 2, |bytes| hex(bytes).to_uppercase(), |shown| format!("  {shown}")),
        ),
        (
            "hexdump -C",
            dump(
                raw,
                |at| format!("{at:08x}  "),
                8,
                |bytes| {
                    bytes.iter().map(|byte| format!("{byte:02x} ")).collect::<Vec<_>>().concat()
                },
                |shown| format!(" |{shown}|"),
            ),
        ),
        ("hexdump", dump(raw, |at| format!("{at:07x} "), 2, swapped, none)),
        (
            "od",
            dump(
                raw,
                od,
                2,
                |bytes| match bytes {
                    [first, second] => format!("{:06o}", u16::from_le_bytes([*first, *second])),
                    bytes => format!("{:06o}", bytes[0]),
                },
                none,
            ),
        ),
        ("od -x", dump(raw, od, 2, swapped, none)),
        ("od -b", dump(raw, od, 1, |bytes| format!("{:03o}", bytes[0]), none)),
        ("od -c", dump(raw, |at| format!("{at:07o} "), 1, column, none)),
        ("od -An -tx1", dump(raw, |_| " ".into(), 1, hex, none)),
        ("od -tu1", dump(raw, od, 1, |bytes| format!("{:>3}", bytes[0]), none)),
        ("hex with colons", bytes(&whole, |byte| format!("{byte:02x}"), ":")),
        ("HEX with blanks", bytes(&whole, |byte| format!("{byte:02X}"), " ")),
        ("C array", format!("{{ {} }};", bytes(&whole, |byte| format!("0x{byte:02x}"), ", "))),
        ("list of numbers", format!("[{}]", bytes(&whole, |byte| byte.to_string(), ", "))),
        ("percent", bytes(&whole, |byte| format!("%{byte:02X}"), "")),
        ("percent, small", bytes(&whole, |byte| format!("%{byte:02x}"), "")),
        ("percent twice", bytes(&whole, |byte| format!("%25{byte:02X}"), "")),
        ("backslash x", bytes(&whole, |byte| format!("\\x{byte:02x}"), "")),
        ("backslash u", bytes(&whole, |byte| format!("\\u{byte:04x}"), "")),
        ("backslash u with braces", bytes(&whole, |byte| format!("\\u{{{byte:x}}}"), "")),
        ("octal escapes", bytes(&whole, |byte| format!("\\{byte:03o}"), "")),
        ("entities", bytes(&whole, |byte| format!("&#{byte};"), "")),
        ("hexadecimal entities", bytes(&whole, |byte| format!("&#x{byte:X};"), "")),
        ("quoted-printable", whole.replace('=', "=3D")),
        ("JSON with slashes", whole.replace('/', "\\/")),
        (
            "JSON in JSON",
            serde_json::to_string(&format!("{{\"a\":\"{}\"}}", whole.replace('/', "\\/"))).unwrap(),
        ),
        ("some characters", whole.replace('+', "%2b").replace('/', "%2f").replace('=', "%3d")),
    ];
    // Narrow columns break short values where no part is long enough to be recognised.
    texts.retain(|(name, _)| value.len() > 20 || *name != "base64 indented");
    texts
}

#[test]
fn known_secrets_are_masked_in_every_encoding_of_the_usual_tools() {
    let mut missed = Vec::new();
    let mut tried = 0;
    for value in [LONG, SHORT] {
        let secrets = Secrets::new([("KEY", value)]);
        for before in ["", "x", "ab", "key: ", "export API=", "0123456789abcdef"] {
            for (name, text) in encodings(value, before) {
                tried += 1;
                let hidden = secrets.hide(&text);
                if !hidden.contains("[secret KEY") {
                    missed.push(format!("{name}, after {before:?}, {} bytes: {text}", value.len()));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} of {tried} missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn dump_around_a_secret_keeps_its_other_lines() {
    let secrets = Secrets::new([("KEY", SHORT)]);
    let text = format!(
        "first line of all\n{}last line",
        dump(
            format!("0123456789abcdef{SHORT}0123456789abcdef").as_bytes(),
            |at| format!("{at:08x}: "),
            2,
            hex,
            |shown| format!("  {shown}"),
        )
    );
    let hidden = secrets.hide(&text);
    assert!(hidden.starts_with("first line of all\n00000000: 3031 3233"), "{hidden}");
    assert!(hidden.contains("00000010: [secret KEY, encoded]\n"), "{hidden}");
    assert!(hidden.ends_with("cdef\nlast line"), "{hidden}");
}

#[test]
fn encoded_secret_is_not_given_back() {
    let secrets = Secrets::new([("KEY", SHORT)]);
    let hidden = secrets.hide(&bytes(SHORT, |byte| format!("\\x{byte:02x}"), "")).into_owned();
    assert_eq!(hidden, "[secret KEY, encoded]");
    let kept = Withheld::Kept(hidden.clone());
    assert_eq!(secrets.reveal_in_value(hidden.into()), Err(kept));
}

#[test]
fn streamed_dump_shows_nothing_behind_the_first_part() {
    let secrets = Secrets::new([("KEY", LONG)]);
    for (name, text) in encodings(LONG, "key: ") {
        let mut masker = secrets.masker();
        let mut shown: String =
            text.chars().map(|letter| masker.push(letter.encode_utf8(&mut [0; 4]))).collect();
        shown.push_str(&masker.finish());
        assert!(shown.contains("[secret KEY"), "{name}: {shown}");
    }
}

/// Cases that were written down from the promises alone, without a look at this module.
mod corpus {
    use super::*;

    const ENCODINGS: &str = include_str!("../../../tests/data/secret/encodings.jsonl");
    const TOKENS: &str = include_str!("../../../tests/data/secret/tokens.jsonl");
    const ORDINARY: &str = include_str!("../../../tests/data/secret/ordinary.txt");
    /// Encodings of the usual tools that are not recognised: UTF-16 and one character a line.
    const UNKNOWN: [&str; 4] =
        ["hexdump -v -e \\x", "od -An -c -w1", "utf-16le hex", "utf-16be hex blanks"];

    fn cases(text: &str) -> impl Iterator<Item = Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap())
    }

    #[test]
    fn encodings_of_the_usual_tools_are_masked() {
        let secrets = Secrets::new([("KEY", LONG)]);
        let is_missed = |case: &Value| {
            let name = case["name"].as_str().unwrap();
            let shown = secrets.hide(case["text"].as_str().unwrap());
            case["usual"] == true && !shown.contains("[secret") && !UNKNOWN.contains(&name)
        };
        let missed: Vec<Value> = cases(ENCODINGS).filter(is_missed).collect();
        assert!(missed.is_empty(), "{missed:#?}");
    }

    #[test]
    fn tokens_of_known_services_are_masked() {
        let text = |case: &Value| -> String {
            case["parts"].as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect()
        };
        let is_missed = |case: &Value| !Secrets::default().hide(&text(case)).contains("[secret");
        let missed: Vec<String> = cases(TOKENS)
            .filter(is_missed)
            .map(|case| format!("{}: {}", case["name"], text(&case)))
            .collect();
        // Tokens without a beginning of their own, and hashes of passwords, are not recognised.
        assert!(missed.len() <= 31, "{} missed\n{}", missed.len(), missed.join("\n"));
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        let secrets = Secrets::new([("KEY", LONG)]);
        let changed: Vec<String> = ORDINARY
            .lines()
            .filter(|line| secrets.hide(line) != *line)
            .map(|line| format!("{line}\n  {}", secrets.hide(line)))
            .collect();
        assert!(changed.is_empty(), "{} changed\n{}", changed.len(), changed.join("\n"));
    }
}
