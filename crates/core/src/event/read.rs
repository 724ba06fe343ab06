//! Reads an event without keeping its parts aside first.
//!
//! The JSON of an event is flat, and the usual way to read a flat object is to collect all of it and to
//! sort it out afterwards. A journal is read in thousands of lines, so this goes the short way: the
//! fields of the envelope are taken as they come, and as soon as the type is known, the data is read
//! straight into its body. Any order of fields is understood; data that comes before its type waits.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Event, EventBody, Position};
use crate::id::{AgentPath, CallId, RunId};
use crate::time::Timestamp;

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

#[derive(Clone, Copy, Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    V,
    Seq,
    After,
    Index,
    Ts,
    Run,
    Parent,
    Agent,
    Call,
    Secrets,
    Type,
    Data,
    #[serde(other)]
    Other,
}

impl<'de> Visitor<'de> for EventVisitor {
    type Value = Event;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        let mut envelope = Envelope::default();
        let mut early_data: Option<Value> = None;
        let mut body = None;
        while let Some(field) = map.next_key()? {
            match field {
                Field::Type if body.is_some() => return Err(Error::duplicate_field("type")),
                Field::Data if body.is_some() || early_data.is_some() => {
                    return Err(Error::duplicate_field("data"));
                }
                Field::Type => {
                    let tag = map.next_value()?;
                    body = Some(match early_data.take() {
                        Some(data) => body_of(tag, data)?,
                        None => EventBody::deserialize(MapAccessDeserializer::new(Rest {
                            tag: Tag::Unread(tag),
                            envelope: &mut envelope,
                            map: &mut map,
                        }))?,
                    });
                }
                Field::Data => early_data = Some(map.next_value()?),
                field => envelope.take(field, &mut map)?,
            }
        }
        envelope.around(body.ok_or_else(|| Error::missing_field("type"))?)
    }
}

fn body_of<E: Error>(tag: String, data: Value) -> Result<EventBody, E> {
    let whole = [("type".to_owned(), Value::String(tag)), ("data".to_owned(), data)];
    EventBody::deserialize(Value::Object(whole.into_iter().collect())).map_err(E::custom)
}

/// The fields around the body.
#[derive(Default)]
struct Envelope {
    v: Option<u32>,
    seq: Option<u64>,
    after: Option<u64>,
    index: Option<u64>,
    ts: Option<Timestamp>,
    run: Option<RunId>,
    parent: Option<RunId>,
    agent: Option<AgentPath>,
    call: Option<CallId>,
    secrets: BTreeSet<String>,
}

impl Envelope {
    fn take<'de, A: MapAccess<'de>>(&mut self, field: Field, map: &mut A) -> Result<(), A::Error> {
        match field {
            Field::V => fill(&mut self.v, "v", map),
            Field::Seq => fill(&mut self.seq, "seq", map),
            Field::After => fill(&mut self.after, "after", map),
            Field::Index => fill(&mut self.index, "index", map),
            Field::Ts => fill(&mut self.ts, "ts", map),
            Field::Run => fill(&mut self.run, "run", map),
            Field::Agent => fill(&mut self.agent, "agent", map),
            Field::Parent => {
                self.parent = map.next_value()?;
                Ok(())
            }
            Field::Call => {
                self.call = map.next_value()?;
                Ok(())
            }
            Field::Secrets => {
                self.secrets = map.next_value()?;
                Ok(())
            }
            Field::Type | Field::Data | Field::Other => map.next_value::<IgnoredAny>().map(drop),
        }
    }

    fn around<E: Error>(self, body: EventBody) -> Result<Event, E> {
        let position = match (self.seq, self.after, self.index) {
            (Some(seq), ..) => Position::Durable { seq },
            (None, Some(after), Some(index)) => Position::Ephemeral { after, index },
            _ => return Err(E::missing_field("seq")),
        };
        Ok(Event {
            v: self.v.ok_or_else(|| E::missing_field("v"))?,
            position,
            ts: self.ts.ok_or_else(|| E::missing_field("ts"))?,
            run: self.run.ok_or_else(|| E::missing_field("run"))?,
            parent: self.parent,
            agent: self.agent.ok_or_else(|| E::missing_field("agent"))?,
            call: self.call,
            secrets: self.secrets,
            body,
        })
    }
}

fn fill<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    slot: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    if slot.replace(map.next_value()?).is_some() {
        return Err(Error::duplicate_field(name));
    }
    Ok(())
}

/// The object from its type on, as the body wants to see it: the type, then the data. Fields of the
/// envelope that come later are taken on the way.
struct Rest<'a, A> {
    tag: Tag,
    envelope: &'a mut Envelope,
    map: &'a mut A,
}

enum Tag {
    Unread(String),
    Named(String),
    Read,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        if let Tag::Unread(tag) = &mut self.tag {
            self.tag = Tag::Named(std::mem::take(tag));
            return seed.deserialize("type".into_deserializer()).map(Some);
        }
        while let Some(field) = self.map.next_key()? {
            match field {
                Field::Type => return Err(Error::duplicate_field("type")),
                Field::Data => return seed.deserialize("data".into_deserializer()).map(Some),
                field => self.envelope.take(field, self.map)?,
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match std::mem::replace(&mut self.tag, Tag::Read) {
            Tag::Named(tag) => seed.deserialize(tag.into_deserializer()),
            Tag::Unread(_) | Tag::Read => self.map.next_value_seed(seed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [&str; 6] = [
        r#""v":1,"seq":3"#,
        r#""ts":7"#,
        r#""run":"r","parent":"p""#,
        r#""agent":"main","other":[1]"#,
        r#""type":"notice""#,
        r#""data":{"message":"x"}"#,
    ];

    fn read(text: &str) -> Result<Event, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn fields_come_in_any_order() {
        let straight = read(&format!("{{{}}}", FIELDS.join(","))).unwrap();
        assert_eq!(straight.body, EventBody::Notice { message: "x".into() });
        assert_eq!(straight.parent, Some(RunId::new("p")));
        for turn in 0..FIELDS.len() {
            let mut fields = FIELDS;
            fields.rotate_left(turn);
            assert_eq!(read(&format!("{{{}}}", fields.join(","))).as_ref(), Ok(&straight));
            fields.reverse();
            assert_eq!(read(&format!("{{{}}}", fields.join(","))).as_ref(), Ok(&straight));
        }
    }

    #[test]
    fn what_is_missing_or_there_twice_is_named() {
        for (left_out, name) in
            [(0, "`seq`"), (1, "`ts`"), (2, "`run`"), (4, "`type`"), (5, "`data`")]
        {
            let mut fields = FIELDS.to_vec();
            fields.remove(left_out);
            let error = read(&format!("{{{}}}", fields.join(","))).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
        for twice in [r#""ts":8"#, r#""type":"notice""#, r#""data":{"message":"y"}"#] {
            let error = read(&format!("{{{},{twice}}}", FIELDS.join(","))).unwrap_err();
            assert!(error.contains("duplicate field"), "{error}");
        }
    }

    #[test]
    fn an_unknown_type_is_named() {
        let text = format!("{{{}}}", FIELDS.join(",")).replace("notice", "teleport");
        assert!(read(&text).unwrap_err().contains("teleport"));
    }
}
