//! Which addresses do not belong to the public internet.
//!
//! The tables follow the IANA registries of special-purpose addresses. An IPv6 address that only wraps
//! an IPv4 address is judged by what it wraps, since that is where its packets go. What is outside the
//! allocated part of IPv6 counts as private: nothing public is there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range: its first address, the length of its prefix, and what it is.
type Range<A> = (A, u32, &'static str);

const fn v4(first: [u8; 4], prefix: u32, what: &'static str) -> Range<Ipv4Addr> {
    let [a, b, c, d] = first;
    (Ipv4Addr::new(a, b, c, d), prefix, what)
}

/// Makes a range from the first three groups; no range here needs more.
const fn v6(first: [u16; 3], prefix: u32, what: &'static str) -> Range<Ipv6Addr> {
    let [a, b, c] = first;
    (Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix, what)
}

const PRIVATE_V4: [Range<Ipv4Addr>; 16] = [
    v4([0, 0, 0, 0], 8, "this network"),
    v4([10, 0, 0, 0], 8, "private network"),
    v4([100, 64, 0, 0], 10, "shared address space"),
    v4([127, 0, 0, 0], 8, "loopback"),
    v4([169, 254, 0, 0], 16, "link-local"),
    v4([172, 16, 0, 0], 12, "private network"),
    v4([192, 0, 0, 0], 24, "protocol assignments"),
    v4([192, 0, 2, 0], 24, "documentation"),
    v4([192, 88, 99, 0], 24, "reserved"),
    v4([192, 168, 0, 0], 16, "private network"),
    v4([198, 18, 0, 0], 15, "benchmarking"),
    v4([198, 51, 100, 0], 24, "documentation"),
    v4([203, 0, 113, 0], 24, "documentation"),
    v4([224, 0, 0, 0], 4, "multicast"),
    v4([255, 255, 255, 255], 32, "broadcast"),
    v4([240, 0, 0, 0], 4, "reserved"),
];

const PRIVATE_V6: [Range<Ipv6Addr>; 7] = [
    v6([0x2001, 0, 0], 23, "protocol assignments"),
    v6([0x2001, 0xdb8, 0], 32, "documentation"),
    v6([0x3fff, 0, 0], 20, "documentation"),
    v6([0xfc00, 0, 0], 7, "private network"),
    v6([0xfe80, 0, 0], 10, "link-local"),
    v6([0xfec0, 0, 0], 10, "site-local"),
    v6([0xff00, 0, 0], 8, "multicast"),
];

/// All of IPv6 that was ever given out.
const GLOBAL_UNICAST: Range<Ipv6Addr> = v6([0x2000, 0, 0], 3, "global unicast");

/// Says to which private range an address belongs, if it does.
pub fn private_range(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => private_v4(address),
        IpAddr::V6(address) => private_v6(address),
    }
}

fn private_v4(address: Ipv4Addr) -> Option<&'static str> {
    PRIVATE_V4.iter().find(|range| holds_v4(range, address)).map(|range| range.2)
}

fn private_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_unspecified() {
        return Some("unspecified");
    }
    if address.is_loopback() {
        return Some("loopback");
    }
    if let Some(wrapped) = wrapped_v4(address) {
        return private_v4(wrapped);
    }
    let known = PRIVATE_V6.iter().find(|range| holds_v6(range, address)).map(|range| range.2);
    known.or_else(|| (!holds_v6(&GLOBAL_UNICAST, address)).then_some("reserved"))
}

/// Returns the IPv4 address that this one stands for: mapped, compatible, NAT64 or 6to4.
fn wrapped_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, high, low] => Some(join(high, low)),
        _ => translated_v4(address),
    }
}

const fn join(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits((high as u32) << 16 | low as u32)
}

/// Returns the IPv4 address that the network translates this one to: mapped, NAT64 or 6to4.
pub(crate) fn translated_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(join(high, low))
        }
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

fn holds_v4((first, prefix, _): &Range<Ipv4Addr>, address: Ipv4Addr) -> bool {
    (first.to_bits() ^ address.to_bits()).leading_zeros() >= *prefix
}

fn holds_v6((first, prefix, _): &Range<Ipv6Addr>, address: Ipv6Addr) -> bool {
    (first.to_bits() ^ address.to_bits()).leading_zeros() >= *prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range_of(address: &str) -> Option<&'static str> {
        private_range(address.parse().unwrap())
    }

    #[test]
    fn private_addresses_are_known_up_to_the_edges_of_their_ranges() {
        for (address, range) in [
            ("0.0.0.0", "this network"),
            ("0.255.255.255", "this network"),
            ("10.0.0.0", "private network"),
            ("10.255.255.255", "private network"),
            ("100.64.0.0", "shared address space"),
            ("100.127.255.255", "shared address space"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("169.254.169.254", "link-local"),
            ("172.16.0.1", "private network"),
            ("172.31.255.255", "private network"),
            ("192.0.0.8", "protocol assignments"),
            ("192.0.2.1", "documentation"),
            ("192.88.99.1", "reserved"),
            ("192.168.0.1", "private network"),
            ("198.18.0.1", "benchmarking"),
            ("198.19.255.255", "benchmarking"),
            ("198.51.100.7", "documentation"),
            ("203.0.113.7", "documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("100::1", "reserved"),
            ("2001::1", "protocol assignments"),
            ("2001:2::1", "protocol assignments"),
            ("2001:1ff:ffff::", "protocol assignments"),
            ("2001:db8::1", "documentation"),
            ("3fff:0:1::", "documentation"),
            ("4000::1", "reserved"),
            ("5f00::1", "reserved"),
            ("fc00::1", "private network"),
            ("fdff:ffff::1", "private network"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
        ] {
            assert_eq!(range_of(address), Some(range), "{address}");
        }
    }

    #[test]
    fn a_wrapped_address_is_judged_by_what_it_wraps() {
        for (address, range) in [
            ("::ffff:127.0.0.1", Some("loopback")),
            ("::ffff:10.1.2.3", Some("private network")),
            ("::ffff:169.254.169.254", Some("link-local")),
            ("::127.0.0.1", Some("loopback")),
            ("::2", Some("this network")),
            ("64:ff9b::192.168.1.1", Some("private network")),
            ("64:ff9b:1::8.8.8.8", Some("reserved")),
            ("2002:7f00:1::", Some("loopback")),
            ("2002:c0a8:101::1", Some("private network")),
            ("::ffff:8.8.8.8", None),
            ("64:ff9b::8.8.8.8", None),
            ("2002:808:808::1", None),
        ] {
            assert_eq!(range_of(address), range, "{address}");
        }
    }

    #[test]
    fn public_addresses_are_left_alone() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "203.0.112.255",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "3ffe:ffff::1",
        ] {
            assert_eq!(range_of(address), None, "{address}");
        }
    }
}
