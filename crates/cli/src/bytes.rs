//! Amounts of bytes as people write and read them: `500MB`, `1.5GiB`; `3 KiB`, `1.2 MiB`.

/// Reads an amount of bytes, as the configuration does.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    convoke::config::parse_bytes(text).map_err(|error| error.to_string())
}

/// Writes an amount of bytes in the largest unit of which there is one.
pub(crate) fn show(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match UNITS.iter().find(|(_, power)| bytes >> power > 0) {
        None if bytes == 1 => "1 byte".to_owned(),
        None => format!("{bytes} bytes"),
        Some((unit, power)) => {
            let tenths = (bytes >> (power - 10)) * 10 / 1024;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_an_amount_is_said() {
        assert_eq!(parse("1.5GiB"), Ok(1_610_612_736));
        assert!(parse("1 parsec").unwrap_err().contains("as 500MB"));
    }

    #[test]
    fn amounts_are_shown_short() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1_300_000, "1.2 MiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(show(bytes), shown);
        }
    }
}
