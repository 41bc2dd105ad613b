//! The environment variables by which programs find a proxy.

/// The destinations without proxy: local addresses, which inside of a sandbox are those of its own loopback.
const DIRECT: &str = "localhost,127.0.0.1,::1,*.local,.local,169.254.0.0/16,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16";

const HTTP: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "http_proxy",
    "https_proxy",
    "WS_PROXY",
    "WSS_PROXY",
    "ws_proxy",
    "wss_proxy",
    "BUNDLE_HTTP_PROXY",
    "BUNDLE_HTTPS_PROXY",
    "DOCKER_HTTP_PROXY",
    "DOCKER_HTTPS_PROXY",
    "NPM_CONFIG_HTTP_PROXY",
    "NPM_CONFIG_HTTPS_PROXY",
    "NPM_CONFIG_PROXY",
    "npm_config_http_proxy",
    "npm_config_https_proxy",
    "npm_config_proxy",
    "PIP_PROXY",
    "YARN_HTTP_PROXY",
    "YARN_HTTPS_PROXY",
];
/// The variables for other protocols, set if there is a SOCKS port.
const ANY: &[&str] = &["ALL_PROXY", "all_proxy", "FTP_PROXY", "ftp_proxy"];
const PAST: &[&str] =
    &["NO_PROXY", "no_proxy", "BUNDLE_NO_PROXY", "NPM_CONFIG_NOPROXY", "npm_config_noproxy", "YARN_NO_PROXY"];

/// The variables that name proxies on these loopback ports.
pub fn variables(http_port: u16, socks_port: Option<u16>) -> Vec<(&'static str, String)> {
    let http = format!("http://127.0.0.1:{http_port}");
    let any = socks_port.map_or_else(|| http.clone(), |port| format!("socks5h://127.0.0.1:{port}"));
    let to =
        |names: &[&'static str], value: &str| names.iter().map(|name| (*name, value.to_owned())).collect::<Vec<_>>();
    let mut variables = [to(HTTP, &http), to(ANY, &any), to(PAST, DIRECT)].concat();
    variables.push(("ELECTRON_GET_USE_PROXY", "true".into()));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_variables_name_both_proxies() {
        let find = |socks, name: &str| {
            let found = variables(3128, socks).into_iter().find(|(found, _)| *found == name);
            found.map(|(_, value)| value).unwrap_or_default()
        };
        assert_eq!(find(Some(8081), "https_proxy"), "http://127.0.0.1:3128");
        assert_eq!(find(Some(8081), "ALL_PROXY"), "socks5h://127.0.0.1:8081");
        assert_eq!(find(None, "ALL_PROXY"), "http://127.0.0.1:3128");
        assert_eq!(find(None, "NO_PROXY"), DIRECT);
        assert_eq!(variables(1, None).len(), 32);
    }
}
