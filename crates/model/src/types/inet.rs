//! Internet addresses: 4 or 16 bytes.
//!
//! ```text
//! 127.0.0.1
//! 2001:db8:0:0:0:ff00:42:8329      no zeros are left out
//! ```
//!
//! As to Java, 16 bytes that only wrap an IPv4 address are that address.

use std::net::{IpAddr, Ipv6Addr};

use super::TypeError;

/// Appends the text of an address.
pub(super) fn write(value: &[u8], out: &mut String) -> Result<(), TypeError> {
    match address(value) {
        Some(IpAddr::V4(address)) => out.push_str(&address.to_string()),
        Some(IpAddr::V6(address)) => {
            for (i, group) in address.segments().into_iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ":" });
                out.push_str(&format!("{group:x}"));
            }
        }
        None => {
            return Err(TypeError::bytes("inet", format!("{} bytes where 4 or 16 are needed", value.len())));
        }
    }
    Ok(())
}

/// Reads an address; names of hosts are not looked up.
pub(super) fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => Ok(address.octets().to_vec()),
        Ok(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(address) => Ok(address.octets().to_vec()),
            None => Ok(address.octets().to_vec()),
        },
        Err(error) => Err(TypeError::text("inet", text, error.to_string())),
    }
}

fn address(value: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(value) {
        return Some(IpAddr::from(bytes));
    }
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?);
    Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
}
