//! A tree of twenty thousand files, the same every time.

use std::path::Path;

use crate::Result;

/// How many files the tree has.
pub(crate) const FILES: usize = 20_000;
/// A pattern that few lines match.
pub(crate) const RARE: &str = r"needle_[0-9]+_in_a_haystack";

const WORDS: [&str; 16] = [
    "let", "value", "return", "struct", "config", "token", "stream", "buffer", "fn", "match",
    "async", "result", "error", "handle", "parse", "index",
];

/// Writes source-like files of about 4 KB; every 500th has one rare line.
pub(crate) fn generate(root: &Path) -> Result<()> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    std::fs::create_dir_all(root.join(".git"))?;
    std::fs::write(root.join(".gitignore"), "/ignored\n*.log\n")?;
    for number in 0..FILES {
        let directory =
            root.join(format!("module_{:03}/part_{:02}", number / 100, number / 10 % 10));
        std::fs::create_dir_all(&directory)?;
        let mut text = String::new();
        for line in 0..100 {
            for _ in 0..6 {
                text.push_str(WORDS.get(random.below(WORDS.len())).unwrap_or(&"x"));
                text.push(' ');
            }
            if number % 500 == 0 && line == 50 {
                text.push_str(&format!("needle_{number}_in_a_haystack"));
            }
            text.push('\n');
        }
        std::fs::write(directory.join(format!("file_{number:05}.rs")), text)?;
    }
    Ok(())
}

/// A small generator of numbers: the tree is the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap_or_default()
    }
}
