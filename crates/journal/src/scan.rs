//! Reads a journal from its first byte to its last, and says how far it can be believed.

use convoke_core::{Event, Position, RunId};

use crate::blob::Blobs;
use crate::damage::{Damage, Reason};
use crate::error::JournalError;
use crate::hash::Hash;
use crate::head::Head;
use crate::header::{FORMAT, Format, Header};
use crate::line;

/// What a journal holds.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) header: Header,
    /// All events that can be read; those after a damage are not known to be complete.
    pub(crate) events: Vec<Event>,
    /// The texts that are lost, though the lines that point to them are intact.
    pub(crate) lost: Vec<Damage>,
    /// How many bytes the lines have that are intact.
    pub(crate) intact: u64,
    /// The hash of the last of them.
    pub(crate) last: Hash,
    /// How many bytes a last line has that was not finished.
    pub(crate) torn: u64,
    pub(crate) damage: Option<Damage>,
}

/// Reads a journal. A last line that was not finished is left out: it has no newline, or holds zeros, which a
/// disk leaves that lost its power before it had all of the line. A journal that is in order is held against its head; one without a
/// first line is empty only if it has no head, since a head is written after that line.
pub(crate) fn scan(
    run: &RunId,
    bytes: &[u8],
    blobs: &Blobs,
    head: Option<&Head>,
) -> Result<Scan, JournalError> {
    let mut lines = Lines { rest: bytes, taken: 0 };
    let (header, hash) = read_header(run, &mut lines).map_err(|error| match (error, head) {
        (JournalError::Empty { run }, Some(head)) => {
            JournalError::Damaged { run, damage: head.emptied() }
        }
        (error, _) => error,
    })?;
    let (events, lost) = (Vec::new(), Vec::new());
    let mut scan =
        Scan { header, events, lost, intact: lines.taken, last: hash, torn: 0, damage: None };
    let is_at_head = |seq: usize| head.is_some_and(|head| head.is_at(seq as u64));
    let mut at_head = is_at_head(0).then(|| scan.last.clone());
    while let Some(found) = lines.next() {
        let mut lost = Vec::new();
        match read_event(&scan, found, blobs, &mut lost) {
            Ok((event, hash)) => {
                let before = scan.events.len() as u64;
                scan.lost.extend(lost.into_iter().map(|reason| Damage::after(before, reason)));
                scan.events.push(event);
                if is_at_head(scan.events.len()) {
                    at_head = Some(hash.clone());
                }
                scan.last = hash;
                scan.intact = lines.taken;
            }
            Err(Reason::NotJson) if lines.rest.is_empty() && line::is_torn(found) => break,
            Err(reason) => {
                let mut damage = Damage::after(scan.events.len() as u64, reason);
                damage.later = salvage(&mut scan, &mut lines, blobs);
                scan.damage = Some(damage);
                return Ok(scan);
            }
        }
    }
    scan.torn = bytes.len() as u64 - scan.intact;
    let last = scan.events.len() as u64;
    scan.damage = head.and_then(|head| head.check(last, at_head.as_ref()));
    Ok(scan)
}

/// Reads on after a line that is not as it was written: lines that are intact in themselves, in the order of their
/// numbers. Returns how many events were found.
fn salvage(scan: &mut Scan, lines: &mut Lines<'_>, blobs: &Blobs) -> u64 {
    let mut last = scan.events.len() as u64;
    let mut count = 0;
    for found in lines {
        let mut lost = Vec::new();
        let fetch = |pointer: &str, hash: &str| blobs.fetch(pointer, hash);
        let read = line::verify(found).and_then(|_| line::read(found, None, fetch, &mut lost));
        let Ok(event) = read else { continue };
        let Position::Durable { seq } = event.position else { continue };
        let is_own = event.parent.is_some() || event.run == scan.header.run;
        if is_own && seq > last {
            scan.lost.extend(lost.into_iter().map(|reason| Damage::after(seq - 1, reason)));
            scan.events.push(event);
            (last, count) = (seq, count + 1);
        }
    }
    count
}

/// Finds whole lines, and counts the bytes they take with their newlines.
struct Lines<'a> {
    rest: &'a [u8],
    taken: u64,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let newline = self.rest.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = self.rest.split_at_checked(newline)?;
        self.rest = rest.get(1..)?;
        self.taken += line.len() as u64 + 1;
        Some(line)
    }
}

fn read_header(run: &RunId, lines: &mut Lines<'_>) -> Result<(Header, Hash), JournalError> {
    let Some(found) = lines.next() else {
        return Err(JournalError::Empty { run: run.clone() });
    };
    if let Ok(Format { journal }) = line::parse(found)
        && journal > u64::from(FORMAT)
    {
        return Err(JournalError::Newer { run: run.clone(), found: journal });
    }
    let damaged = |reason| JournalError::Damaged {
        run: run.clone(),
        damage: Damage { line: 1, seq_before: 0, reason, later: 0 },
    };
    let hash = match line::verify(found) {
        Err(Reason::NotJson) if lines.rest.is_empty() && line::is_torn(found) => {
            return Err(JournalError::Empty { run: run.clone() });
        }
        verified => verified.map_err(damaged)?,
    };
    let header: Header = line::parse(found)
        .map_err(|error| damaged(Reason::Unknown { problem: error.to_string() }))?;
    if header.run != *run {
        return Err(damaged(Reason::OtherRun { found: header.run }));
    }
    Ok((header, hash))
}

fn read_event(
    scan: &Scan,
    found: &[u8],
    blobs: &Blobs,
    lost: &mut Vec<Reason>,
) -> Result<(Event, Hash), Reason> {
    let hash = line::verify(found)?;
    let fetch = |pointer: &str, hash: &str| blobs.fetch(pointer, hash);
    let event = line::read(found, Some(&scan.last), fetch, lost)?;
    let expected = scan.events.len() as u64 + 1;
    match event.position {
        Position::Durable { seq } if seq == expected => {}
        Position::Durable { seq: found } | Position::Ephemeral { after: found, .. } => {
            return Err(Reason::Gap { expected, found });
        }
    }
    if event.parent.is_none() && event.run != scan.header.run {
        return Err(Reason::OtherRun { found: event.run });
    }
    Ok((event, hash))
}
