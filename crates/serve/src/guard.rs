//! Access control: a request must have the token and a known host name, and must not come from another site's page. There
//! are no cookies, so a browser sends no credentials by itself.

use std::net::{IpAddr, SocketAddr};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::problem::Problem;
use crate::token::Token;

/// Host names of loopback.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Checks before any route.
pub struct Guard {
    token: Token,
    /// Accepted values of `Host`, in lower case.
    hosts: Vec<String>,
    scheme: &'static str,
    of: Of,
}

/// The kind of server: hints for a refused request differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// `pubmark serve`.
    Server,
    /// A command that shows its own run.
    Command,
}

impl Guard {
    /// A guard for a server at this address, with further host names.
    pub fn new(of: Of, token: Token, address: SocketAddr, names: &[String], is_encrypted: bool) -> Guard {
        let scheme = if is_encrypted { "https" } else { "http" };
        let default_port = if is_encrypted { 443 } else { 80 };
        let own = address.to_string();
        let own = own.rsplit_once(':').map_or(own.as_str(), |(host, _)| host).to_owned();
        let loopback = LOOPBACK.iter().map(|name| (*name).to_owned());
        let all = loopback.chain([own]).chain(names.iter().map(|name| name.to_lowercase()));
        let with_ports = |name: String| {
            let bare = (address.port() == default_port).then(|| name.clone());
            [Some(format!("{name}:{}", address.port())), bare].into_iter().flatten()
        };
        Guard { token, hosts: all.flat_map(with_ports).collect(), scheme, of }
    }

    /// Checks the host name. Otherwise another site's domain name may point to this server (DNS rebinding).
    ///
    /// # Errors
    /// The host name is not accepted.
    pub fn name(&self, headers: &HeaderMap) -> Result<String, Problem> {
        let host = only(headers, header::HOST).map(str::to_lowercase);
        let Some(host) = host.filter(|host| self.hosts.contains(host)) else {
            return Err(Problem::new(
                StatusCode::MISDIRECTED_REQUEST,
                "the host name of the request is not one of the server's",
            )
            .hint(match self.of {
                Of::Server => format!("its names are {}; `--host NAME` adds one", self.hosts.join(", ")),
                Of::Command => format!("its names are {}", self.hosts.join(", ")),
            }));
        };
        Ok(host)
    }

    /// Checks that the host name is accepted, and that the request comes from the server's own pages or from no page.
    ///
    /// # Errors
    /// It comes from elsewhere.
    pub fn site(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let host = self.name(headers)?;
        let origin = headers.get_all(header::ORIGIN).iter().collect::<Vec<_>>();
        let own = format!("{}://{host}", self.scheme);
        let is_foreign = |origin: &&HeaderValue| !origin.as_bytes().eq_ignore_ascii_case(own.as_bytes());
        let crosses = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site" || site == "same-site");
        if origin.iter().any(is_foreign) || crosses {
            return Err(Problem::new(StatusCode::FORBIDDEN, "the request comes from a page of another site"));
        }
        Ok(())
    }

    /// Checks the token.
    ///
    /// # Errors
    /// The token is missing or wrong.
    pub fn token(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let shown = only_bytes(headers, header::AUTHORIZATION).unwrap_or_default();
        let (scheme, rest) = shown.split_at(shown.len().min(7));
        if scheme.eq_ignore_ascii_case(b"bearer ") && self.token.is(rest) {
            return Ok(());
        }
        Err(Problem::new(StatusCode::UNAUTHORIZED, "the token is missing or wrong")
            .hint(match self.of {
                Of::Server => "send `Authorization: Bearer TOKEN`; it was printed at the first start, and is in `.serve/token` in the folder of results",
                Of::Command => "send `Authorization: Bearer TOKEN`; it is behind the `#` of the address that the command printed",
            }))
    }
}

/// Whether a request names a server on this machine in a way that no domain name of another site can (DNS rebinding): as
/// `localhost` or as an IP address. With any port, because a forwarded port is another one.
pub fn is_local_name(headers: &HeaderMap) -> bool {
    let Ok(host) = only(headers, header::HOST).unwrap_or_default().parse::<Authority>() else { return false };
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// The value of a header that occurs exactly once, as text.
fn only(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    std::str::from_utf8(only_bytes(headers, name)?).ok()
}

fn only_bytes(headers: &HeaderMap, name: header::HeaderName) -> Option<&[u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.as_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        let folder = tempfile::tempdir().unwrap();
        let token = Token::of_file(&folder.path().join("token")).unwrap().token;
        Guard::new(Of::Server, token, "127.0.0.1:7780".parse().unwrap(), &["lab.example".to_owned()], false)
    }

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_page_of_another_site_and_a_name_that_leads_here_are_refused() {
        let guard = guard();
        for right in [
            &[("host", "127.0.0.1:7780")][..],
            &[("host", "LOCALHOST:7780")],
            &[("host", "lab.example:7780"), ("origin", "http://lab.example:7780")],
            &[("host", "[::1]:7780"), ("sec-fetch-site", "same-origin")],
        ] {
            assert_eq!(guard.site(&headers(right)), Ok(()), "{right:?}");
        }
        for wrong in [
            &[][..],
            &[("host", "evil.example:7780")],
            &[("host", "127.0.0.1")],
            &[("host", "127.0.0.1:7780"), ("origin", "http://evil.example")],
            &[("host", "127.0.0.1:7780"), ("origin", "null")],
            &[("host", "127.0.0.1:7780"), ("origin", "https://127.0.0.1:7780")],
            &[("host", "127.0.0.1:7780"), ("sec-fetch-site", "cross-site")],
        ] {
            assert!(guard.site(&headers(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn no_domain_name_of_another_site_is_local() {
        for right in ["127.0.0.1:9464", "127.0.0.1", "LocalHost:80", "[::1]:9464", "[::1]"] {
            assert!(is_local_name(&headers(&[("host", right)])), "{right}");
        }
        for wrong in ["evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert!(!is_local_name(&headers(&[("host", wrong)])), "{wrong}");
        }
        assert!(!is_local_name(&HeaderMap::new()));
    }

    #[test]
    fn only_the_token_opens() {
        let guard = guard();
        let token = guard.token.expose().to_owned();
        assert_eq!(guard.token(&headers(&[("authorization", &format!("Bearer {token}"))])), Ok(()));
        for wrong in ["", "Bearer", "Bearer ", &format!("Basic {token}"), &format!("Bearer {token}x"), &token] {
            assert!(guard.token(&headers(&[("authorization", wrong)])).is_err(), "{wrong}");
        }
        assert!(guard.token(&HeaderMap::new()).is_err());
        let mut twice = headers(&[("authorization", &format!("Bearer {token}"))]);
        twice.append(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        assert!(guard.token(&twice).is_err());
    }
}
