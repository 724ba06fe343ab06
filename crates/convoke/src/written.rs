//! Where tools and programs write, and what of a command lies there.
//!
//! What runs with the user's rights must not be chosen by what runs without them. So a command whose program, or
//! a file among its arguments, lies where tools and programs write is no command of the user's, unless the user
//! named that file in full.

use std::path::{Path, PathBuf};

use convoke_tool::ToolContext;

use crate::config::{Author, Config};

/// The directories that tools and programs write.
#[derive(Clone, Debug)]
pub(crate) struct Written(Vec<PathBuf>);

/// A word of a command that names a file there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrittenWord {
    /// Whether it is the program, and not an argument.
    pub(crate) is_program: bool,
    /// Where the file really is.
    pub(crate) file: PathBuf,
}

impl Written {
    /// Takes the directories from what calls may use, and from what programs may besides.
    pub(crate) fn by(config: &Config, context: &ToolContext) -> Self {
        let roots = context.roots().paths().map(Path::to_owned);
        Self(roots.chain(config.sandbox.write.iter().cloned()).map(real).collect())
    }

    /// Adds a directory.
    pub(crate) fn and(mut self, directory: &Path) -> Self {
        self.0.push(real(directory.to_owned()));
        self
    }

    /// Tells whether a path really lies there.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let path = real(path.to_owned());
        self.0.iter().any(|root| path.starts_with(root))
    }

    /// Finds the first word of a command, started in a directory, that names a file there.
    pub(crate) fn find(
        &self,
        words: &[String],
        author: Author,
        directory: &Path,
        search_path: Option<&str>,
    ) -> Option<WrittenWord> {
        words.iter().enumerate().find_map(|(index, word)| {
            let is_own = author == Author::User && Path::new(word).is_absolute();
            let is_program = index == 0;
            let found = if is_program {
                find_program(word, directory, search_path)
            } else {
                Some(directory.join(word)).filter(|path| path.is_file())
            };
            let file = found.filter(|file| !is_own && self.holds(file)).map(real);
            file.map(|file| WrittenWord { is_program, file })
        })
    }
}

/// Looks for a program as it would be started from a directory; nothing where there is none.
pub fn find_program(name: &str, directory: &Path, search_path: Option<&str>) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(directory.join(name)).filter(|path| path.is_file());
    }
    let places = std::env::split_paths(search_path.unwrap_or_default());
    places.map(|place| directory.join(place).join(name)).find(|path| path.is_file())
}

fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}
