//! Colour: when there is any, and what each one means.

use std::fmt::{self, Display};

use anstyle::AnsiColor;
use convoke_core::Permission;

use crate::environment::Environment;

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Colour {
    /// On a terminal that has it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Lets the environment decide where the command line did not: `NO_COLOR`, then
    /// `CLICOLOR_FORCE`, then `TERM=dumb`.
    pub(super) fn or_from(self, environment: &Environment) -> Self {
        match self {
            Self::Auto if environment.no_color() => Self::Never,
            Self::Auto if environment.forces_color() => Self::Always,
            Self::Auto if environment.is_dumb_terminal() => Self::Never,
            decided => decided,
        }
    }

    /// Tells whether a stream gets colour.
    pub(super) const fn applies(self, terminal: bool) -> bool {
        match self {
            Self::Auto => terminal,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// What a colour means. Everything reads as well without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The title of a part.
    Heading,
    /// What something is called.
    Name,
    /// Beside the point.
    Dim,
    /// Fine; added.
    Good,
    /// Worth a look.
    Warn,
    /// Wrong; removed.
    Bad,
    /// A place in a diff; code in a text.
    Place,
    /// Said with stress.
    Emphasis,
    /// No longer meant.
    Struck,
}

impl Style {
    /// Returns the style of what is allowed, asked about or denied.
    pub(crate) const fn of(permission: Permission) -> Self {
        match permission {
            Permission::Allow => Self::Good,
            Permission::Ask => Self::Warn,
            Permission::Deny => Self::Bad,
        }
    }

    fn ansi(self) -> anstyle::Style {
        let plain = anstyle::Style::new();
        let colour = |colour: AnsiColor| plain.fg_color(Some(anstyle::Color::Ansi(colour)));
        match self {
            Self::Heading => plain.bold().underline(),
            Self::Name => plain.bold(),
            Self::Dim => plain.dimmed(),
            Self::Good => colour(AnsiColor::Green),
            Self::Warn => colour(AnsiColor::Yellow).bold(),
            Self::Bad => colour(AnsiColor::Red).bold(),
            Self::Place => colour(AnsiColor::Cyan),
            Self::Emphasis => plain.italic(),
            Self::Struck => plain.strikethrough(),
        }
    }
}

/// A text with a style, shown if the stream has colour.
#[derive(Debug)]
pub(crate) struct Painted<T> {
    style: Option<anstyle::Style>,
    text: T,
}

impl<T> Painted<T> {
    pub(super) fn new(style: Style, text: T, coloured: bool) -> Self {
        Self { style: coloured.then(|| style.ansi()), text }
    }
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Some(style) => write!(formatter, "{style}{}{style:#}", self.text),
            None => self.text.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_goes_before_the_environment() {
        let environment = |pairs: &[(&str, &str)]| Environment::of(pairs);
        for (said, variables, expected) in [
            (Colour::Auto, &[][..], Colour::Auto),
            (Colour::Auto, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], Colour::Never),
            (Colour::Auto, &[("NO_COLOR", "")], Colour::Auto),
            (Colour::Auto, &[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")], Colour::Always),
            (Colour::Auto, &[("CLICOLOR_FORCE", "0"), ("TERM", "dumb")], Colour::Never),
            (Colour::Always, &[("NO_COLOR", "1")], Colour::Always),
            (Colour::Never, &[("CLICOLOR_FORCE", "1")], Colour::Never),
        ] {
            assert_eq!(said.or_from(&environment(variables)), expected, "{variables:?}");
        }
    }

    #[test]
    fn colour_is_only_where_it_is_shown() {
        assert_eq!(Painted::new(Style::Bad, "x", false).to_string(), "x");
        let painted = Painted::new(Style::Bad, "x", true).to_string();
        assert!(painted.starts_with('\u{1b}') && painted.ends_with("\u{1b}[0m"), "{painted:?}");
    }
}
