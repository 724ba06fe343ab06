//! Lists the runs of a store.
//!
//! Each journal is only looked at from outside; one that changed since the last time is read from where
//! it was read to then.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use convoke_core::RunId;
use rustix::fs::{Access, AtFlags, Stat, accessat, statat};

use crate::blob::Blobs;
use crate::error::{JournalError, Tried};
use crate::files;
use crate::index::{Entry, Index, Stamp};
use crate::owner;
use crate::store::{Store, journal_in};
use crate::summary::{Condition, Gathered, Summary};

impl Store {
    /// Returns all runs, newest first.
    pub fn list(&self) -> Result<Vec<Summary>, JournalError> {
        let runs = self.runs();
        let names = self.ids()?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let directory = files::open_any(&runs).tried("open", &runs)?;
        let mut index = Index::read(&self.index_path());
        let known = index.runs.len();
        let mut current = HashMap::with_capacity(names.len());
        let mut changed = false;
        let mut summaries = Vec::with_capacity(names.len());
        for name in names {
            // One that is being made or removed at this moment is not listed.
            let Some(status) = stat(&directory, &name) else { continue };
            let stamp = Stamp::of(&status);
            let before = index.runs.remove(&name);
            let run = RunId::new(name.as_str());
            let entry = match before {
                Some(entry) if entry.stamp == stamp => entry,
                before => {
                    changed = true;
                    match self.gather(&run, stamp, before) {
                        Ok(entry) => entry,
                        // It was removed since its name was read.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                        // It may be readable the next time, so nobody remembers this.
                        Err(error) => {
                            let entry = Entry::unreadable(stamp, &error);
                            summaries.push(self.summary(&directory, &run, &entry));
                            continue;
                        }
                    }
                }
            };
            summaries.push(self.summary(&directory, &run, &entry));
            current.insert(name, entry);
        }
        if changed || current.len() != known {
            Index::of(current).write(&self.index_path());
        }
        summaries.sort_by(|left, right| {
            right.created.cmp(&left.created).then_with(|| right.run.cmp(&left.run))
        });
        Ok(summaries)
    }

    fn index_path(&self) -> PathBuf {
        self.root().join("index")
    }

    fn gather(&self, run: &RunId, stamp: Stamp, before: Option<Entry>) -> io::Result<Entry> {
        let directory = self.runs().join(run.as_str());
        let blobs = Blobs::of(&directory);
        let mut file = files::open(&journal_in(&directory))?;
        let grown = before.filter(|before| before.stamp.size < stamp.size);
        let mut gathered = None;
        if let Some(mut before) = grown.map(|before| before.gathered) {
            let news = read_from(&mut file, before.read)?;
            gathered = before.go_on(run, &news, &blobs).then_some(before);
        }
        let gathered = if let Some(gathered) = gathered {
            gathered
        } else {
            let bytes = read_from(&mut file, 0)?;
            Gathered::from_start(run, &bytes, &blobs)
        };
        Ok(Entry { stamp, blob_bytes: blobs.bytes(), gathered })
    }

    fn summary(&self, directory: &File, run: &RunId, entry: &Entry) -> Summary {
        let Gathered { ended, events, turns, tool_calls, .. } = entry.gathered;
        let Gathered { prompt, model, agent, directory: place, forked_from, mut problem, .. } =
            entry.gathered.clone();
        let Gathered { mut created, mut last_activity, .. } = entry.gathered;
        if entry.gathered.read == 0 && problem.is_none() {
            (created, last_activity) = (entry.stamp.changed(), entry.stamp.changed());
            // A head is written after the first line, so there was one.
            let was_emptied = self.head(run).exists();
            problem = was_emptied.then(|| "the journal is empty".to_owned());
        }
        let open_questions = entry.gathered.asked.len();
        let condition = if self.is_owned(directory, run) {
            if open_questions > 0 { Condition::Waiting } else { Condition::Running }
        } else if let Some((status, cause)) = ended {
            Condition::Ended { status, cause }
        } else if events == 0 {
            Condition::NeverStarted
        } else {
            Condition::Interrupted
        };
        Summary {
            run: run.clone(),
            created,
            last_activity,
            prompt,
            model,
            agent,
            directory: place,
            served: entry.gathered.served,
            condition,
            turns,
            tool_calls,
            usage: entry.gathered.usage(),
            open_questions,
            bytes: entry.stamp.size + entry.blob_bytes,
            events,
            forked_from,
            problem,
        }
    }

    /// Tells whether a process works on a run. Only where one said so the lock itself is looked at.
    fn is_owned(&self, directory: &File, run: &RunId) -> bool {
        let says_so = accessat(directory, format!("{run}/lock"), Access::EXISTS, AtFlags::empty());
        says_so.is_ok()
            && self.directory(run).is_ok_and(|directory| {
                files::open(&journal_in(&directory))
                    .and_then(|file| owner::is_locked(&file))
                    .unwrap_or(false)
            })
    }
}

fn stat(directory: &File, name: &str) -> Option<Stat> {
    statat(directory, format!("{name}/journal.jsonl"), AtFlags::empty()).ok()
}

fn read_from(file: &mut File, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
