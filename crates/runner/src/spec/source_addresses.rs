//! `--source-addresses`: the addresses from which clients connect.

use std::net::IpAddr;
use std::sync::Arc;

/// Largest number of addresses: with 28,232 ports each, this is far more connections than one process can have.
const MOST: u128 = 4_096;

/// Addresses from which clients connect in turn; at least one, all different, all of one address family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAddresses(pub Arc<[IpAddr]>);

impl SourceAddresses {
    /// Parses a list of addresses, ranges `A-B` and blocks `A/LENGTH`.
    pub fn parse(text: &str) -> Result<SourceAddresses, String> {
        let mut found: Vec<IpAddr> = Vec::new();
        for part in text.split(',') {
            let (first, last) = ends(part.trim())?;
            let further = number(last) - number(first);
            if further >= MOST.saturating_sub(found.len() as u128) {
                return Err(format!("`{text}` has more than {MOST} addresses"));
            }
            found.extend((0..=further).map(|step| address(first, number(first) + step)));
        }
        if let Some(other) = found.iter().find(|other| other.is_ipv4() != found[0].is_ipv4()) {
            return Err(format!("`{}` and `{other}` are of different families: a connection has one", found[0]));
        }
        let mut sorted = found.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("`{}` is in it twice", pair[0])),
            None => Ok(SourceAddresses(found.into())),
        }
    }
}

/// First and last address of a part of the list.
fn ends(part: &str) -> Result<(IpAddr, IpAddr), String> {
    let read = |text: &str| {
        text.trim().parse::<IpAddr>().map_err(|_| {
            format!(
                "`{}` is not an address; write `127.0.0.1-127.0.0.8`, `10.0.0.0/28`, or addresses with commas",
                text.trim()
            )
        })
    };
    if let Some((base, length)) = part.split_once('/') {
        let base = read(base)?;
        let bits = if base.is_ipv4() { 32 } else { 128 };
        let length = length.parse::<u32>().ok().filter(|length| *length <= bits);
        let length =
            length.ok_or_else(|| format!("`{part}` is no block: behind `/` stands a number from 0 to {bits}"))?;
        let below = if length == bits { 0 } else { (u128::MAX >> (128 - bits)) >> length };
        let begin = number(base) & !below;
        return Ok((address(base, begin), address(base, begin | below)));
    }
    let Some((first, last)) = part.split_once('-') else {
        let one = read(part)?;
        return Ok((one, one));
    };
    let (first, last) = (read(first)?, read(last)?);
    if first.is_ipv4() != last.is_ipv4() {
        return Err(format!("`{part}` begins in one family of addresses and ends in the other"));
    }
    if last < first {
        return Err(format!("`{part}` ends before it begins"));
    }
    Ok((first, last))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// The address with this number, of the address family of `like`; the number is in the range of that family.
fn address(like: IpAddr, number: u128) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4((number as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(number.into()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        SourceAddresses::parse(text).unwrap().0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lists_ranges_and_blocks_are_read_in_order() {
        assert_eq!(shown("127.0.0.9"), ["127.0.0.9"]);
        assert_eq!(shown("127.0.0.1-127.0.0.3, 10.0.0.5"), ["127.0.0.1", "127.0.0.2", "127.0.0.3", "10.0.0.5"]);
        assert_eq!(shown("10.1.2.7/30"), ["10.1.2.4", "10.1.2.5", "10.1.2.6", "10.1.2.7"]);
        assert_eq!(shown("10.1.2.7/32"), ["10.1.2.7"]);
        assert_eq!(shown("127.0.0.254-127.0.1.1").len(), 4);
        assert_eq!(shown("fd00::fffe-fd00::1:0"), ["fd00::fffe", "fd00::ffff", "fd00::1:0"]);
        assert_eq!(shown("fd00::/126").len(), 4);
        assert_eq!(shown("10.0.0.0/20").len(), 4_096);
    }

    #[test]
    fn an_invalid_set_of_addresses_has_a_reason() {
        for (text, why) in [
            ("", "`` is not an address"),
            ("localhost", "`localhost` is not an address; write"),
            ("127.0.0.1,", "`` is not an address"),
            ("127.0.0.1-9", "`9` is not an address"),
            ("127.0.0.9-127.0.0.1", "ends before it begins"),
            ("127.0.0.1-::1", "begins in one family"),
            ("127.0.0.1,::1", "different families"),
            ("127.0.0.1,127.0.0.0/30", "`127.0.0.1` is in it twice"),
            ("127.0.0.0/8", "more than 4096 addresses"),
            ("::/0", "more than 4096 addresses"),
            ("0.0.0.0-255.255.255.255", "more than 4096 addresses"),
            ("10.0.0.0/33", "a number from 0 to 32"),
            ("10.0.0.0/-1", "a number from 0 to 32"),
        ] {
            let error = SourceAddresses::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
