//! The HTTP listener: who is let in, and what the page may load.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::*;

#[tokio::test]
async fn pages_of_others_neither_read_nor_order() {
    let server = TestServer::with_http().await;
    let at = server.http();
    let status = async |line: &str, head: &str| {
        let answer = http_with(at, line, head, "").await;
        parts(&answer).0
    };
    for path in ["/", "/console/app.js", "/api/v1/overview"] {
        let line = format!("GET {path}");
        assert_eq!(status(&line, "Host: evil.example\r\n").await, 421, "{path}");
        assert_eq!(status(&line, "").await, 421, "{path} for nobody");
    }
    assert_eq!(status("GET /healthz", "Host: evil.example\r\n").await, 200);
    // There is no such group: who is told so has come through.
    let pause = "POST /api/v1/groups/g/pause";
    assert_eq!(status(pause, "Host: evil.example\r\n").await, 421);
    assert_eq!(
        status(pause, "Host: localhost:1\r\nOrigin: http://evil.example\r\n").await,
        403
    );
    assert_eq!(
        status(pause, "Host: localhost:1\r\nX-Forwarded-For: 192.0.2.1\r\n").await,
        403
    );
    assert_eq!(
        status(pause, "Host: localhost:1\r\nOrigin: http://localhost:1\r\n").await,
        404
    );
}

#[tokio::test]
async fn a_token_lets_orders_in_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
    let server = TestServer::with(|config| {
        http_too(config);
        config.admin_token_file = Some(file);
        config.admin_hosts = vec!["console.example".to_owned()];
    })
    .await;
    let at = server.http();
    // There is no such group: who is told so has come through.
    let pause = async |token: &str| {
        let head = format!("Host: console.example\r\nX-Forwarded-For: 192.0.2.1\r\n{token}");
        let answer = http_with(at, "POST /api/v1/groups/g/pause", &head, "").await;
        (parts(&answer).0, answer)
    };
    let (status, answer) = pause("").await;
    assert_eq!(status, 401);
    assert!(
        answer.to_ascii_lowercase().contains("www-authenticate: bearer"),
        "{answer}"
    );
    assert_eq!(pause("Authorization: Bearer 0123456789abcdef\r\n").await.0, 401);
    assert_eq!(
        pause("Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n")
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn a_server_without_its_token_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = anabranch_server::Config {
        data_dir: folder.path().to_owned(),
        http: Some("127.0.0.1:0".to_owned()),
        admin_token_file: Some(folder.path().join("none")),
        ..anabranch_server::Config::default()
    };
    let error = anabranch_server::Server::start(config.listen("127.0.0.1:0"))
        .await
        .err()
        .unwrap();
    assert!(error.to_string().contains("admin.token.file"), "{error}");
}

#[tokio::test]
async fn the_page_may_load_nothing_from_elsewhere() {
    let server = TestServer::with_http().await;
    let answer = http_get(server.http(), "/").await.to_ascii_lowercase();
    for head in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "content-type: text/html; charset=utf-8",
    ] {
        assert!(answer.contains(head), "{head} in {answer}");
    }
    let tag = answer.split("etag: ").nth(1).unwrap().lines().next().unwrap();
    let head = format!("Host: localhost\r\nIf-None-Match: {tag}\r\n");
    let again = http_with(server.http(), "GET /", &head, "").await;
    assert!(again.starts_with("HTTP/1.1 304"), "{again}");
}
