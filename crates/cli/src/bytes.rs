//! Amounts of bytes as people write and read them: `500MB`, `1.5GiB`; `3 KiB`, `1.2 MiB`.

/// Reads an amount of bytes. `KB`, `MB`, `GB` and `TB` are powers of 1000; with an `i`, of 1024.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let wrong = || "write a number and a unit, as 500MB, 1GB or 2GiB".to_owned();
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let each: u64 = match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => 1,
        "k" => 1000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return Err(wrong()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    // Three digits after the point say more than anybody means.
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let thousandths: u64 = thousandths.parse().map_err(|_| wrong())?;
    if fraction.is_empty() || !fraction.bytes().all(|letter| letter.is_ascii_digit()) {
        return Err(wrong());
    }
    let part = each / 1000 * thousandths + each % 1000 * thousandths / 1000;
    Ok(whole.saturating_mul(each).saturating_add(part))
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
    fn amounts_are_read_with_their_units() {
        for (text, bytes) in [
            ("0", 0),
            ("1500", 1500),
            ("12b", 12),
            ("500MB", 500_000_000),
            ("1 gb", 1_000_000_000),
            ("1.5G", 1_500_000_000),
            ("1.5GiB", 1_610_612_736),
            ("2KiB", 2048),
            ("0.25k", 250),
            ("99999999TB", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "GB", "1.GB", ".5GB", "1..5G", "1.2.3G", "-1GB", "1 parsec", "1é"] {
            assert!(parse(text).unwrap_err().contains("as 500MB"), "{text}");
        }
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
