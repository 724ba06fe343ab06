//! A terminal for tests: it obeys what the view writes, and no more.

use unicode_width::UnicodeWidthChar;

use crate::output::Size;

/// What a terminal shows, and what has scrolled out of it.
#[derive(Debug)]
pub(crate) struct Terminal {
    size: Size,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Terminal {
    pub(crate) fn new(size: Size) -> Self {
        Self { size, rows: vec![Vec::new()], row: 0, column: 0 }
    }

    /// Shows what was written. Anything but colours and the movements of the view is a mistake.
    pub(crate) fn write(&mut self, text: &str) {
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\u{1b}' => {
                    assert_eq!(letters.next(), Some('['), "only CSI sequences are written");
                    let mut number = String::new();
                    let command = loop {
                        match letters.next() {
                            Some(letter) if letter.is_ascii_digit() || letter == ';' => {
                                number.push(letter);
                            }
                            other => break other,
                        }
                    };
                    self.obey(command, &number);
                }
                '\n' => {
                    self.column = 0;
                    self.down();
                }
                '\r' => self.column = 0,
                letter => {
                    assert!(!letter.is_control(), "{letter:?} is written");
                    self.put(letter);
                }
            }
        }
    }

    fn obey(&mut self, command: Option<char>, number: &str) {
        match command {
            Some('m') => {}
            Some('A') => {
                let top = self.rows.len().saturating_sub(self.size.rows);
                let up: usize = number.parse().expect("a number of rows");
                assert!(self.row >= top + up, "the cursor leaves the screen");
                self.row -= up;
            }
            Some('K') => self.rows[self.row].truncate(self.column),
            Some('J') => {
                // Some terminals keep what was on a screen that is cleared from its first row on.
                let is_full = self.rows.len() >= self.size.rows;
                let top = self.rows.len().saturating_sub(self.size.rows);
                let is_all = is_full && (self.row, self.column) == (top, 0);
                assert!(!is_all, "all of the screen is cleared, and stays in its history");
                self.rows[self.row].truncate(self.column);
                self.rows.truncate(self.row + 1);
            }
            other => panic!("{other:?} is written"),
        }
    }

    fn put(&mut self, letter: char) {
        let width = letter.width().unwrap_or(0);
        if self.column + width > self.size.columns {
            self.column = 0;
            self.down();
        }
        let row = &mut self.rows[self.row];
        row.resize(row.len().max(self.column), ' ');
        if self.column < row.len() {
            row[self.column] = letter;
        } else {
            row.push(letter);
        }
        // A wide letter takes a second place, which shows nothing.
        if width == 2 {
            row.truncate(self.column + 1);
            row.push('\0');
        }
        self.column += width;
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }

    /// Returns everything that was shown and still stands.
    pub(crate) fn text(&self) -> String {
        let line = |row: &Vec<char>| {
            row.iter().filter(|letter| **letter != '\0').collect::<String>().trim_end().to_owned()
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Tells whether the cursor stands at the beginning of an empty last line.
    pub(crate) fn is_clean(&self) -> bool {
        self.column == 0 && self.row + 1 == self.rows.len() && self.rows[self.row].is_empty()
    }
}
