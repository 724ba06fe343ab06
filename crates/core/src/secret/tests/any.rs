//! What holds for any text.

use proptest::prelude::*;

use super::{Secrets, TOKEN};

const KNOWN: [(&str, &str); 4] = [
    ("KEY", "sk-0123456789"),
    ("LONGER", "sk-0123456789-and-more"),
    ("PIN", "9017263544"),
    ("WORD", "päss-wörd+9"),
];

/// Pieces of which secrets are made, and of which they are nearly made.
const PIECES: [&str; 41] = [
    "sk-0123456789",
    "-and-more",
    "9017263544",
    "päss-wörd+9",
    "sk-",
    "ghp_",
    TOKEN,
    "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R",
    "eyJhbGciOiJIUzI1NiJ9",
    ".eyJzdWIiOiIxMjM0NTY3ODkwIn0",
    ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9",
    ".",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----BEGIN ",
    "-----END RSA PRIVATE KEY-----",
    "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun",
    "Proc-Type: 4,ENCRYPTED",
    "\n",
    "\\n",
    " ",
    "=",
    "https://",
    "me:hunter2-and-4@host.example",
    "Bearer ",
    "Authorization: Basic ",
    "dXNlcjpwYXNzd29yZDE=",
    "AKIA",
    "IOSFODNN7ABCDEFG",
    "ä",
    "x",
    "\"",
    "[secret KEY]",
    "736b2d30313233343536373839",
    "password=",
    "DB_PASSWORD = \"",
    "\"api_key\": \"",
    "secret_key: ",
    "password",
    "Tr0ub4dor&3x",
    "hunter22",
    "9f86d081884c7d659a2f",
];

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => (0..PIECES.len()).prop_map(|index| PIECES[index].to_owned()),
        1 => "[ -~]{0,12}",
        1 => any::<String>(),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_known_secret_stays_and_hiding_twice_changes_nothing(text in text()) {
        let secrets = Secrets::new(KNOWN);
        let hidden = secrets.hide(&text).into_owned();
        for (_, value) in KNOWN {
            prop_assert!(!hidden.contains(value), "{hidden}");
        }
        prop_assert_eq!(secrets.hide(&hidden), hidden.as_str());
    }

    #[test]
    fn pieces_give_what_the_whole_gives(
        text in text(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let secrets = Secrets::new(KNOWN);
        let mut cuts: Vec<usize> =
            cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        cuts.sort_unstable();
        let mut masker = secrets.masker();
        let (mut shown, mut from) = (String::new(), 0);
        for cut in cuts {
            shown.push_str(&masker.push(&text[from..cut]));
            from = cut;
        }
        shown.push_str(&masker.push(&text[from..]));
        shown.push_str(&masker.finish());
        prop_assert_eq!(shown, secrets.hide(&text));
    }

    #[test]
    fn character_by_character_gives_the_same(text in text()) {
        let secrets = Secrets::new(KNOWN);
        let mut masker = secrets.masker();
        let mut shown: String =
            text.chars().map(|letter| masker.push(letter.encode_utf8(&mut [0; 4]))).collect();
        shown.push_str(&masker.finish());
        prop_assert_eq!(shown, secrets.hide(&text));
    }

    #[test]
    fn what_was_hidden_comes_back(text in text()) {
        let text = text.replace("[secret", "[");
        let secrets = Secrets::new(KNOWN);
        let hidden = secrets.hide(&text).into_owned();
        let mut names = std::collections::BTreeSet::new();
        secrets.find_known_in(&text, &mut names);
        secrets.note(names);
        prop_assert_eq!(secrets.reveal_in_value(hidden.into()), Ok(text.into()));
    }

    #[test]
    fn words_stay_what_they_are(text in "([a-z]{1,9}[ ,.:;/_-]{1,2}){0,40}") {
        prop_assert_eq!(Secrets::new(KNOWN).hide(&text), text.as_str());
    }
}
