//! Bytes as hexadecimal digits, two of each, and back.

/// The bytes as lower-case digits.
///
/// ```
/// assert_eq!(siltstone_model::hex::to_hex(&[0, 0xff]), "00ff");
/// ```
pub fn to_hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    push_hex(bytes, &mut out);
    out
}

/// Appends the bytes as lower-case digits.
pub fn push_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
}

/// The bytes that digits of either case spell; `None` if there is anything else, or an odd number of them.
///
/// ```
/// assert_eq!(siltstone_model::hex::parse_hex("00fF"), Some(vec![0, 0xff]));
/// assert_eq!(siltstone_model::hex::parse_hex("+f"), None);
/// assert_eq!(siltstone_model::hex::parse_hex("0ff"), None);
/// ```
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
