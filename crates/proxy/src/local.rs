//! Addresses that are not public: loopback, private and link-local networks, and reserved ranges.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::host::Host;

/// Whether a host is a local address, or a name that always means this machine.
pub(crate) fn is_local_host(host: &Host) -> bool {
    let name = host.as_str();
    host.address().is_some_and(is_local) || name == "localhost" || name.ends_with(".localhost")
}

pub(crate) fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_local_v4(address),
        IpAddr::V6(address) => is_local_v6(address),
    }
}

fn is_local_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        // 0.0.0.0/8, carrier-grade NAT, protocol assignments, benchmarking, and the reserved 240.0.0.0/4.
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19))
        || a >= 240
}

fn is_local_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_local_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // IPv4 addresses inside of IPv6 ones: compatible, mapped, translated and tunnelled.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => address.is_loopback() || embedded(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x64, 0xff9b, ..] => true,
        [0x2002, high, low, ..] => embedded(high, low),
        // Documentation, and Teredo tunnels, whose endpoint is unknown.
        [0x2001, 0x0db8, ..] | [0x2001, 0, ..] | [0x3fff, 0..=0xfff, ..] => true,
        [first, ..] => address.is_multicast() || first & 0xfe00 == 0xfc00 || first & 0xff80 == 0xfe80 || first < 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_private_addresses_count_as_local() {
        let near = [
            "127.0.0.1",
            "127.9.9.9",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "0.1.2.3",
            "100.64.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "100::1",
        ];
        let far = [
            "1.1.1.1",
            "8.8.8.8",
            "172.32.0.1",
            "192.0.1.1",
            "100.128.0.1",
            "198.20.0.1",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "::ffff:8.8.8.8",
        ];
        for (addresses, expected) in [(&near[..], true), (&far[..], false)] {
            for address in addresses {
                assert_eq!(is_local(address.parse().unwrap()), expected, "{address}");
            }
        }
        for (host, expected) in
            [("localhost", true), ("a.localhost", true), ("notlocalhost", false), ("10.0.0.1", true)]
        {
            assert_eq!(is_local_host(&Host::parse(host).unwrap()), expected, "{host}");
        }
    }
}
