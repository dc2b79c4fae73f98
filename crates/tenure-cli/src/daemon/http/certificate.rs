//! The names in a client's certificate.
//!
//! TLS has verified the certificate before: this only reads the subject's CN and OU and the
//! alternative names out of it. The reader takes any bytes and gives the names that it finds; what
//! it does not understand it leaves out.

/// The tags of DER that matter here.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const BOOLEAN: u8 = 0x01;
const OCTETS: u8 = 0x04;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// 2.5.4.3, 2.5.4.11 and 2.5.29.17.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const UNIT: &[u8] = &[0x55, 0x04, 0x0b];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// The most names that are looked at.
const MOST: usize = 64;

/// The names of a certificate's owner: `CN=alice`, `DNS=ci.example`, `EMAIL=a@b.example`,
/// `URI=spiffe://…`, `OU=ops`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// Of a certificate in DER.
    pub(super) fn of(certificate: &[u8]) -> Self {
        let mut names = Self::default();
        let _ = names.read(certificate); // Names before something strange stay.
        names
    }

    /// All of them, as they are written in `[daemon.roles]`.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// One for the log: the common name, else the first.
    pub(super) fn shown(&self) -> &str {
        let common = self.iter().find(|name| name.starts_with("CN="));
        common.or_else(|| self.iter().next()).unwrap_or("(no name)")
    }

    fn read(&mut self, certificate: &[u8]) -> Option<()> {
        let mut rest = Der(Der(certificate).expect(SEQUENCE)?).expect(SEQUENCE).map(Der)?;
        if rest.0.first() == Some(&VERSION) {
            rest.next()?;
        }
        let _serial = rest.next()?;
        let _algorithm = rest.next()?;
        let _issuer = rest.next()?;
        let _validity = rest.next()?;
        let subject = rest.expect(SEQUENCE)?;
        self.read_subject(Der(subject));
        while let Some((tag, content)) = rest.next() {
            if tag == EXTENSIONS {
                self.read_extensions(Der(Der(content).expect(SEQUENCE)?));
            }
        }
        Some(())
    }

    fn read_subject(&mut self, mut subject: Der<'_>) {
        while let Some((SET, content)) = subject.next() {
            let mut parts = Der(content);
            while let Some((SEQUENCE, part)) = parts.next() {
                let mut part = Der(part);
                let (kind, value) = (part.expect(OBJECT_ID), part.next());
                let (Some(kind), Some((_, value))) = (kind, value) else { continue };
                match kind {
                    COMMON_NAME => self.put("CN", value),
                    UNIT => self.put("OU", value),
                    _ => {}
                }
            }
        }
    }

    fn read_extensions(&mut self, mut extensions: Der<'_>) {
        while let Some((SEQUENCE, extension)) = extensions.next() {
            let mut extension = Der(extension);
            if extension.expect(OBJECT_ID) != Some(ALTERNATIVE_NAMES) {
                continue;
            }
            if extension.0.first() == Some(&BOOLEAN) {
                extension.next();
            }
            let names = extension.expect(OCTETS).and_then(|octets| Der(octets).expect(SEQUENCE));
            let mut names = Der(names.unwrap_or_default());
            while let Some((tag, value)) = names.next() {
                match tag {
                    0x81 => self.put("EMAIL", value),
                    0x82 => self.put("DNS", value),
                    0x86 => self.put("URI", value),
                    _ => {}
                }
            }
        }
    }

    fn put(&mut self, kind: &str, value: &[u8]) {
        let Ok(text) = std::str::from_utf8(value) else { return };
        if self.0.len() < MOST && !text.is_empty() && text.len() <= 256 && !text.contains(char::is_control) {
            self.0.push(format!("{kind}={text}"));
        }
    }
}

/// The rest of a run of DER values.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The tag and the content of the next value.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The content of the next value, if it has this tag.
    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }
}

#[cfg(test)]
mod tests {
    use rcgen::string::Ia5String;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn made() -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["ci.example".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "alice");
        params.distinguished_name.push(DnType::OrganizationalUnitName, "operators");
        let text = |text: &str| Ia5String::try_from(text).unwrap();
        params.subject_alt_names.push(SanType::Rfc822Name(text("alice@example.org")));
        params.subject_alt_names.push(SanType::URI(text("spiffe://example.org/alice")));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_names_of_a_certificate_are_read() {
        let names = Names::of(&made());
        let mut found: Vec<&str> = names.iter().filter(|name| *name != "CN=rcgen self signed cert").collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [
                "CN=alice",
                "DNS=ci.example",
                "EMAIL=alice@example.org",
                "OU=operators",
                "URI=spiffe://example.org/alice"
            ]
        );
        assert!(names.shown().starts_with("CN="));
    }

    #[test]
    fn any_bytes_are_read_to_their_end() {
        let whole = made();
        for length in 0..whole.len() {
            Names::of(&whole[..length]);
        }
        for at in 0..whole.len() {
            for value in [0x00, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                Names::of(&bytes);
            }
        }
        assert_eq!(Names::of(&[]).shown(), "(no name)");
    }
}
