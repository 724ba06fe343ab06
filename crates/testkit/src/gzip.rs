//! Gzip that is easy to write: letters keep their order, but not one of them its bits.
//!
//! Every piece is a block of its own and ends at a whole byte, so that a client can decode it as soon as
//! it is there. Nothing gets shorter, since nobody here cares.

/// What every gzip file begins with: deflate, no name, no time, no system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// The rest of a stored block without content, after its first byte.
const NOTHING: [u8; 4] = [0, 0, 0xff, 0xff];

/// Encodes pieces that belong together; as many come back, and one that ends them.
pub(crate) fn encode(pieces: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut checksum = u32::MAX;
    let mut length = 0_u32;
    let mut encoded = Vec::with_capacity(pieces.len() + 1);
    for (nth, piece) in pieces.iter().enumerate() {
        let mut bytes = if nth == 0 { HEAD.to_vec() } else { Vec::new() };
        bytes.extend(block(piece));
        checksum = piece.iter().fold(checksum, |checksum, byte| add(checksum, *byte));
        length = piece.iter().fold(length, |length, _| length.wrapping_add(1));
        encoded.push(bytes);
    }
    let mut end = if pieces.is_empty() { HEAD.to_vec() } else { Vec::new() };
    end.push(1);
    end.extend(NOTHING);
    end.extend((!checksum).to_le_bytes());
    end.extend(length.to_le_bytes());
    encoded.push(end);
    encoded
}

/// Writes a block in the codes that every decoder knows, and one without content to reach a whole byte.
fn block(piece: &[u8]) -> Vec<u8> {
    let mut bits = vec![false, true, false];
    for byte in piece {
        match u16::from(*byte) {
            low @ 0..=143 => push_code(&mut bits, 0x30 + low, 8),
            high => push_code(&mut bits, 0x190 + high - 144, 9),
        }
    }
    push_code(&mut bits, 0, 7);
    bits.extend([false; 3]);
    let byte = |bits: &[bool]| {
        bits.iter().enumerate().fold(0, |byte, (place, bit)| byte | u8::from(*bit) << place)
    };
    bits.chunks(8).map(byte).chain(NOTHING).collect()
}

/// Codes are written from their highest bit on.
fn push_code(bits: &mut Vec<bool>, code: u16, length: u32) {
    bits.extend((0..length).rev().map(|place| code >> place & 1 == 1));
}

/// Adds a byte to a CRC-32.
fn add(checksum: u32, byte: u8) -> u32 {
    (0..8).fold(checksum ^ u32::from(byte), |rest, _| {
        if rest & 1 == 1 { (rest >> 1) ^ 0xedb8_8320 } else { rest >> 1 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_blocks_and_the_end_has_the_checksum() {
        let [one, two, end] = &encode(&[b"1234".to_vec(), b"56789".to_vec()])[..] else {
            panic!("three pieces")
        };
        assert_eq!(one[..10], HEAD);
        assert!(one.ends_with(&NOTHING) && two.ends_with(&NOTHING));
        assert!(!one.windows(2).any(|pair| pair == b"12"));
        // The checksum of "123456789" is the one every description of CRC-32 gives.
        assert_eq!(*end, b"\x01\x00\x00\xff\xff\x26\x39\xf4\xcb\x09\x00\x00\x00");
    }

    #[test]
    fn a_block_has_the_bits_it_should_have() {
        // `a` is 0x91, from the highest bit on, after the three bits of the head.
        assert_eq!(block(b"a"), [0b0100_1010, 0b0000_0100, 0, 0, 0, 0xff, 0xff]);
    }
}
