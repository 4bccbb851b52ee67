//! The bearer token: created at the first start, in a file that only its owner can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use pubmark_model::secret::Secret;
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

/// Random bytes of a token.
const BYTES: usize = 32;
/// Maximum length of a token that is read, bytes.
const LONGEST: usize = 4096;

/// The token that a request has to contain.
#[derive(Clone, Debug)]
pub struct Token(Secret);

/// A token, and whether it is new: a new token is printed once.
pub struct Found {
    /// The token.
    pub token: Token,
    /// Whether it was created now.
    pub is_new: bool,
}

impl Token {
    /// Reads the token from the file, or creates the file.
    ///
    /// # Errors
    /// The file cannot be read or written, is empty, or other users can read it.
    pub fn of_file(path: &Path) -> io::Result<Found> {
        match fs::read_to_string(path) {
            Ok(text) => Token::read(path, &text).map(|token| Found { token, is_new: false }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let token = random_hex(BYTES)?;
                let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
                file.write_all(token.as_bytes())?;
                file.write_all(b"\n")?;
                file.sync_all()?;
                Ok(Found { token: Token(Secret::new(token)), is_new: true })
            }
            Err(error) => Err(error),
        }
    }

    /// A new random token that is not in a file.
    ///
    /// # Errors
    /// The kernel returns no random bytes.
    pub fn random() -> io::Result<Token> {
        random_hex(BYTES).map(|text| Token(Secret::new(text)))
    }

    fn read(path: &Path, text: &str) -> io::Result<Token> {
        use std::os::unix::fs::MetadataExt as _;
        let refused = |reason: &str| Err(io::Error::new(io::ErrorKind::InvalidData, reason.to_owned()));
        if fs::metadata(path)?.mode() & 0o077 != 0 {
            return refused("others than its owner may read or write it: `chmod 600` it, or remove it for a new one");
        }
        match text.trim() {
            "" => refused("it is empty: remove it for a new one"),
            token if token.len() > LONGEST || token.contains(char::is_whitespace) => {
                refused("it holds no token: remove it for a new one")
            }
            token => Ok(Token(Secret::new(token))),
        }
    }

    /// The text of the token, to be printed once.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Whether the text is this token. The comparison takes the same time for all texts of the same length.
    pub fn is(&self, shown: &[u8]) -> bool {
        self.expose().as_bytes().ct_eq(shown).into()
    }
}

/// This number of random bytes as hexadecimal digits.
pub fn random_hex(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("the kernel gives no random bytes"))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_its_owner_alone_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = Token::of_file(&path).unwrap();
        assert!(made.is_new && made.token.expose().len() == 64);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Token::of_file(&path).unwrap();
        assert!(!again.is_new && again.token.is(made.token.expose().as_bytes()));
        for wrong in ["", "x", &made.token.expose()[1..], &format!("{}0", made.token.expose())] {
            assert!(!again.token.is(wrong.as_bytes()), "{wrong}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Token::of_file(&path).is_err());
    }

    #[test]
    fn a_token_is_not_printed() {
        assert!(!format!("{:?}", Token(Secret::new("abc"))).contains("abc"));
    }
}
