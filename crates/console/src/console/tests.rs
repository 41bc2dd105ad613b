use super::*;

fn console(home: &tempfile::TempDir) -> Console {
    Console::new(home.path(), 4000, Vec::new())
}

fn request(method: Method, path: &str, headers: &[(&'static str, &str)]) -> Parts {
    let mut builder = http::Request::builder().method(method).uri(path).header("host", "127.0.0.1:4000");
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

const OWN: (&str, &str) = ("origin", "http://127.0.0.1:4000");

fn open(console: &Console, role: Role) -> String {
    let link = console.create_link(role).unwrap();
    let body = serde_json::json!({ "code": link.strip_prefix("/#").unwrap() }).to_string();
    let opened = console.respond(&request(Method::POST, SESSION, &[OWN]), body.as_bytes());
    assert_eq!(opened.status(), StatusCode::OK);
    let cookie = opened.headers()[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
    let again = console.respond(&request(Method::POST, SESSION, &[OWN]), body.as_bytes());
    assert_eq!(again.status(), StatusCode::UNAUTHORIZED);
    cookie.split(';').next().unwrap().to_owned()
}

#[test]
fn a_link_becomes_a_cookie_that_admits_the_websocket() {
    let home = tempfile::tempdir().unwrap();
    let console = console(&home);
    let cookie = open(&console, Role::View);
    let with_cookie = |origin| request(Method::GET, SOCKET, &[("cookie", &cookie), ("origin", origin)]);
    let session = console.admit(&with_cookie(OWN.1).headers).unwrap();
    assert_eq!(session.role, Role::View);
    assert!(console.is_valid(&session));
    let foreign = console.admit(&with_cookie("http://evil.example").headers).unwrap_err();
    assert_eq!(foreign.status(), StatusCode::FORBIDDEN);
    let bare = console.admit(&request(Method::GET, SOCKET, &[("cookie", &cookie)]).headers).unwrap_err();
    assert_eq!(bare.status(), StatusCode::FORBIDDEN, "without an origin");
    console.access.revoke_all().unwrap();
    assert!(!console.is_valid(&session));
    assert_eq!(console.admit(&with_cookie(OWN.1).headers).unwrap_err().status(), StatusCode::UNAUTHORIZED);
}

#[test]
fn a_session_is_not_opened_for_a_page_of_another_origin() {
    let home = tempfile::tempdir().unwrap();
    let console = console(&home);
    let link = console.create_link(Role::Drive).unwrap();
    let body = serde_json::json!({ "code": link.strip_prefix("/#").unwrap() }).to_string();
    for headers in [&[][..], &[("origin", "http://evil.example")], &[("origin", "null")]] {
        let answer = console.respond(&request(Method::POST, SESSION, headers), body.as_bytes());
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{headers:?}");
    }
    let bad = console.respond(&request(Method::POST, SESSION, &[OWN]), b"{}");
    assert_eq!(bad.status(), StatusCode::BAD_REQUEST);
}

#[test]
fn every_answer_has_the_policy_that_keeps_requests_inside_the_origin() {
    let home = tempfile::tempdir().unwrap();
    let console = console(&home);
    for path in ["/", "/console/src/main.js", "/console/none", SESSION] {
        let answer = console.respond(&request(Method::GET, path, &[]), b"");
        assert_eq!(answer.headers()[header::CONTENT_SECURITY_POLICY], CONTENT_SECURITY_POLICY);
        assert_eq!(answer.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    }
}

#[test]
fn the_page_is_served_and_the_websockets_of_other_clients_are_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let console = console(&home);
    let page = console.respond(&request(Method::GET, "/", &[]), b"");
    assert_eq!(
        (page.status(), &page.headers()[header::CONTENT_TYPE]),
        (StatusCode::OK, &HeaderValue::from_static("text/html; charset=utf-8"))
    );
    let upgrade = request(Method::GET, "/", &[("upgrade", "websocket")]);
    assert!(!Console::serves("/", &upgrade.headers));
    assert!(Console::serves("/", &page.headers().clone()));
    assert!(!Console::serves("/readyz", &HeaderMap::new()));
}
