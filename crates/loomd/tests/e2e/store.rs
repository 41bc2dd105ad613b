//! `loomd store`, `loomd nodes` and the store in `loomd doctor`.

use loomd_testkit::model::message;
use loomd_testkit::{Home, Launch, Postgres, ScriptedModel, reference};
use serde_json::{Value, json};

use crate::common::{RunResult, launch, loomd, output, run};
use crate::interchange::{ended, started, turns};

/// Runs the program with a database.
async fn with_store(home: &Home, url: &str, args: &[&str]) -> RunResult {
    output(loomd(home).env("LOOMD_STORE", url).env_remove("PGPASSWORD").env_remove("PGPASSFILE").args(args)).await
}

async fn succeeds(home: &Home, url: &str, args: &[&str]) -> String {
    let done = with_store(home, url, args).await;
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{args:?}: {done:?}");
    done.stdout
}

#[tokio::test]
async fn what_is_wrong_with_a_database_is_one_clear_line_and_a_failure() {
    let Some(server) = Postgres::shared() else { return };
    let home = Home::empty();
    let (name, newer) = (server.create_database(), server.create_database());
    let user = format!("poor_{name}");
    server.sql(
        &name,
        &format!("CREATE ROLE {user} LOGIN PASSWORD 'secret'; REVOKE CREATE ON DATABASE {name} FROM PUBLIC"),
    );
    succeeds(&home, &server.url(&newer), &["store", "migrate"]).await;
    server.sql(&newer, "INSERT INTO loomd.schema_version (version, at) VALUES (99, now())");
    let unknown_host = format!("postgres://ann:secret@{}/work", "x".repeat(64));
    let cases = [
        (server.url_as(&user, "secret2", &name), format!("wrong password for user \"{user}\"")),
        (server.url_as(&user, "secret", "nowhere"), "database \"nowhere\" does not exist: create it first".into()),
        (
            server.url_as(&user, "secret", &name),
            format!("user \"{user}\" lacks rights: it may not create a schema in the database"),
        ),
        (server.url(&newer), "the schema has version 99, and this program knows version ".into()),
        (
            server.tcp_url(&user, "secret", &name, "sslmode=disable"),
            format!("the server requires TLS for user \"{user}\": use sslmode=require"),
        ),
        (server.tcp_url(&user, "secret", &name, "sslmode=require"), "the server's certificate is not trusted".into()),
        ("postgres://ann:secret@127.0.0.1:1/work".into(), "no server listens there: ".into()),
        ("postgres://ann:secret@/work?host=/nowhere".into(), "no server listens there: ".into()),
        (unknown_host, "unknown host: ".into()),
    ];
    for (url, words) in cases {
        let check = with_store(&home, &url, &["store", "check"]).await;
        assert_eq!((check.code, check.stdout.as_str()), (Some(1), ""), "{check:?}");
        let line = check.stderr.strip_suffix('\n').unwrap_or_default();
        assert!(line.starts_with("error: postgres://") && !line.contains('\n'), "{check:?}");
        assert!(line.contains(&words) && !line.contains("secret"), "{line:?} has no {words:?}");
        let nodes = with_store(&home, &url, &["nodes"]).await;
        assert_eq!((nodes.code, nodes.stderr), (Some(1), check.stderr), "every command says the same");
    }
    let bad = run(&home, &["store", "check", "--store", "postgres://ann:secret@host:x/work"]).await;
    assert_eq!(bad.code, Some(2));
    assert!(bad.stderr.starts_with("error: invalid store address: ") && !bad.stderr.contains("secret"), "{bad:?}");
    let none = run(&home, &["nodes"]).await;
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("no database: give --store URL, set LOOMD_STORE"), "{none:?}");
}

#[tokio::test]
async fn nodes_are_listed_also_of_the_database_that_config_toml_names() {
    let Some(server) = Postgres::shared() else { return };
    let (home, name) = (Home::empty(), server.create_database());
    let url = server.url(&name);
    assert_eq!(succeeds(&home, &url, &["nodes"]).await, "URL  LABELS  STATE  THREADS  EXPIRES IN\n");
    assert_eq!(server.sql(&name, "SELECT to_regnamespace('loomd') IS NULL"), "t", "nothing is changed");
    succeeds(&home, &url, &["store", "migrate"]).await;
    server.sql(
        &name,
        "INSERT INTO loomd.node (session, url, labels, draining, started_at, expires_at) VALUES \
         ('00000000-0000-0000-0000-000000000001', 'ws://a:1', '{gpu,eu}', false, now(), now() + interval '1 hour'), \
         ('00000000-0000-0000-0000-000000000002', 'ws://b:1', '{}', true, now() + interval '1 second', now() + interval '1 hour'), \
         ('00000000-0000-0000-0000-000000000003', NULL, '{}', false, now() + interval '2 seconds', now() - interval '1 hour'); \
         INSERT INTO loomd.lease (thread_id, session, token, epoch, reader) VALUES \
         (gen_random_uuid(), '00000000-0000-0000-0000-000000000001', 1, 1, gen_random_uuid())",
    );
    home.write("config.toml", &format!("[loomd]\nstore = {}\nnode_labels = [\"eu\"]", json!(url)));
    let table = run(&home, &["nodes"]).await;
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""));
    let rows: Vec<Vec<&str>> = table.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1][..4], ["ws://a:1", "gpu,eu", "live", "1"]);
    assert_eq!(rows[2][..4], ["ws://b:1", "-", "draining", "0"]);
    assert_eq!(rows[3][..], ["-", "-", "expired", "0", "-"]);
    let json: Value = serde_json::from_str(&run(&home, &["store", "nodes", "--json"]).await.stdout).unwrap();
    assert_eq!(json[0]["labels"], json!(["gpu", "eu"]));
    assert_eq!((&json[2]["state"], &json[2]["url"]), (&json!("expired"), &Value::Null));
}

#[tokio::test]
async fn doctor_checks_the_store_that_is_named() {
    let Some(server) = Postgres::shared() else { return };
    let model = ScriptedModel::start().await;
    let (home, name) = (Home::new(&model), server.create_database());
    let report = async |url: &str| with_store(&home, url, &["doctor", "--offline"]).await.stdout;
    let has = |report: &str, line: &str| {
        assert!(report.lines().any(|known| known.trim_start().starts_with(line)), "no {line:?} in\n{report}");
    };
    let fresh = report(&server.url(&name)).await;
    has(&fresh, "Store");
    has(&fresh, "✓ postgres://postgres@");
    has(&fresh, "! no tables yet; the server makes them when it starts");
    has(&fresh, "✓ no node is registered");
    succeeds(&home, &server.url(&name), &["store", "migrate"]).await;
    server.sql(
        &name,
        "INSERT INTO loomd.node (session, started_at, expires_at) VALUES (gen_random_uuid(), now(), now())",
    );
    let made = report(&server.url(&name)).await;
    has(&made, "✓ the tables have version ");
    has(&made, "✓ the user has the rights that are needed");
    has(&made, "✓ nodes: 0 live, 0 draining, 1 expired");
    let user = format!("reader_{name}");
    server.sql(
        &name,
        &format!(
            "CREATE ROLE {user} LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA loomd TO {user}; \
             GRANT SELECT ON ALL TABLES IN SCHEMA loomd TO {user}"
        ),
    );
    let refused = report(&server.url_as(&user, "secret", &name)).await;
    has(&refused, &format!("✗ user \"{user}\" lacks rights: it has no DELETE on loomd."));
    let wrong = report(&server.url_as(&user, "wrong-secret", &name)).await;
    has(&wrong, "✗ postgres://");
    assert!(wrong.contains("wrong password") && !wrong.contains("wrong-secret"), "{wrong}");
    let none = output(loomd(&home).env_remove("LOOMD_STORE").args(["doctor", "--offline"])).await.stdout;
    assert!(!none.contains("Store"), "{none}");
}

/// The texts of turns; the reference shows other ids.
fn texts(turns: &Value) -> Vec<String> {
    let items = turns.as_array().into_iter().flatten().flat_map(|turn| turn["items"].as_array().into_iter().flatten());
    items
        .filter_map(|item| item["text"].as_str().or(item["content"][0]["text"].as_str()).map(ToOwned::to_owned))
        .collect()
}

/// Stores the threads of one home in a database, and writes them into another home.
async fn through_database(from: &Home, to: &Home, url: &str) {
    let home = |home: &Home| home.path().to_str().unwrap().to_owned();
    let imported = succeeds(from, url, &["store", "import", &home(from)]).await;
    assert!(imported.starts_with("imported 1 threads with "), "{imported}");
    let exported = succeeds(to, url, &["store", "export", &home(to)]).await;
    assert!(exported.starts_with("exported 1 threads with "), "{exported}");
}

#[tokio::test]
async fn a_thread_goes_through_the_database_and_is_resumed_by_this_server_and_the_reference() {
    let Some(database) = Postgres::shared() else { return };
    let model = ScriptedModel::start().await;
    let (from, to) = (Home::new(&model), Home::new(&model));
    model.reply(message("first answer"));
    let server = started(launch(), &from).await;
    let thread = server.start_thread(Default::default()).await;
    server.run_turn(&thread.id, "first question").await;
    let shown = turns(&server, &thread.id).await;
    ended(server).await;
    through_database(&from, &to, &database.url(&database.create_database())).await;

    model.reply(message("second answer"));
    let server = started(launch(), &to).await;
    assert_eq!(turns(&server, &thread.id).await, shown);
    server.request("thread/resume", json!({ "threadId": thread.id })).await.expect("an exported thread resumes");
    server.run_turn(&thread.id, "second question").await;
    let shown = turns(&server, &thread.id).await;
    ended(server).await;

    let Some(reference) = reference(env!("CARGO_TARGET_TMPDIR")) else { return };
    let last = Home::new(&model);
    through_database(&to, &last, &database.url(&database.create_database())).await;
    model.reply(message("third answer"));
    let theirs = started(Launch::new(&reference).args(["app-server"]), &last).await;
    assert_eq!(texts(&turns(&theirs, &thread.id).await), texts(&shown));
    theirs.request("thread/resume", json!({ "threadId": thread.id })).await.expect("the reference resumes it");
    theirs.run_turn(&thread.id, "third question").await;
    assert_eq!(texts(&turns(&theirs, &thread.id).await).len(), 6);
    ended(theirs).await;
}
