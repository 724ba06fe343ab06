//! Looks for secrets in anything that can be written as JSON, without writing it.
//!
//! Nearly all events hold none, so this has to be cheap: every text is looked at where it is.

use std::fmt::{self, Display};

use serde::Serialize;
use serde::ser::{
    Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::Secrets;

/// Tells whether a secret stands in any text, key or number of a value.
pub(super) fn holds_secret(value: &impl Serialize, secrets: &Secrets) -> bool {
    value.serialize(Look(secrets)).is_err_and(|stop| stop == Stop::Found)
}

#[derive(Clone, Copy)]
struct Look<'s>(&'s Secrets);

/// Why looking ended early.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    Found,
    /// The value cannot be written at all.
    Unwritable,
}

impl Display for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the look ended early")
    }
}

impl std::error::Error for Stop {}

impl Error for Stop {
    fn custom<T: Display>(_: T) -> Self {
        Self::Unwritable
    }
}

impl Look<'_> {
    fn text(self, text: &str) -> Result<(), Stop> {
        if self.0.stand_in(text) { Err(Stop::Found) } else { Ok(()) }
    }

    fn number(self, number: impl Display) -> Result<(), Stop> {
        if self.0.has_numbers() && self.0.is_known(&number.to_string()) {
            return Err(Stop::Found);
        }
        Ok(())
    }
}

impl Serializer for Look<'_> {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_bool(self, _: bool) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_i8(self, _: i8) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_i16(self, _: i16) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_i32(self, number: i32) -> Result<(), Stop> {
        self.number(number)
    }

    fn serialize_i64(self, number: i64) -> Result<(), Stop> {
        self.number(number)
    }

    fn serialize_i128(self, number: i128) -> Result<(), Stop> {
        self.number(number)
    }

    fn serialize_u8(self, _: u8) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_u16(self, _: u16) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_u32(self, number: u32) -> Result<(), Stop> {
        self.number(number)
    }

    fn serialize_u64(self, number: u64) -> Result<(), Stop> {
        self.number(number)
    }

    fn serialize_u128(self, number: u128) -> Result<(), Stop> {
        self.number(number)
    }

    fn serialize_f32(self, _: f32) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_f64(self, _: f64) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_char(self, _: char) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Result<(), Stop> {
        self.text(text)
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Stop> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Stop> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Stop> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Stop> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Stop> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Stop> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Stop> {
        Ok(self)
    }
}

impl SerializeSeq for Look<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

impl SerializeTuple for Look<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

impl SerializeTupleStruct for Look<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

impl SerializeTupleVariant for Look<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

impl SerializeMap for Look<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Stop> {
        key.serialize(*self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

impl SerializeStruct for Look<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

impl SerializeStructVariant for Look<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}
