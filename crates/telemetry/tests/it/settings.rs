use loomd_telemetry::Telemetry;
use loomd_testkit::Collector;

use crate::started::settings;

fn refused(otel: &str) -> String {
    settings(otel, &|_| None).err().expect("is refused").to_string()
}

#[test]
fn exporters_that_cannot_work_are_refused_with_the_key() {
    let table = [
        ("otel.exporter.otlp-http = { endpoint = 'not a uri' }", "`otel.exporter`: invalid endpoint `not a uri`: "),
        (
            "otel.trace_exporter.otlp-http = { endpoint = 'ftp://x' }",
            "`otel.trace_exporter`: invalid endpoint `ftp://x`: expected an `http` or `https` URL",
        ),
        ("otel.metrics_exporter.otlp-http = { endpoint = '' }", "`otel.metrics_exporter`: invalid endpoint ``: "),
        ("otel.exporter.otlp-grpc = { endpoint = 'not a uri' }", "`otel.exporter`: invalid endpoint `not a uri`: "),
        (
            "otel.exporter.otlp-http = { endpoint = 'http://x', headers = { 'bad name' = 'v' } }",
            "`otel.exporter`: invalid header name `bad name`",
        ),
        (
            "otel.exporter.otlp-http = { endpoint = 'http://x', tls = { ca-certificate = '/no.pem' } }",
            "`otel.exporter`: cannot read /no.pem: ",
        ),
        (
            "otel.exporter.otlp-http = { endpoint = 'http://x', tls = { client-certificate = '/no.pem' } }",
            "`otel.exporter`: `client-certificate` and `client-private-key` must be set together",
        ),
    ];
    for (otel, expected) in table {
        let error = refused(otel);
        let prefix = "error loading otel config: invalid value for ";
        assert!(error.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(expected)), "{error}");
    }
}

#[test]
fn a_secret_header_is_not_in_the_error() {
    let error = refused("otel.exporter.otlp-http = { endpoint = 'http://x', headers = { key = \"s3cr\\net\" } }");
    assert!(error.ends_with("the value of header `key` is invalid"), "{error}");
}

#[test]
fn certificates_that_are_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.pem");
    std::fs::write(&path, "nothing").unwrap();
    let path = path.display();
    let error = refused(&format!(
        "otel.exporter.otlp-http = {{ endpoint = 'https://x', tls = {{ ca-certificate = '{path}' }} }}"
    ));
    assert!(error.ends_with("`otel.exporter`: no root certificate found"), "{error}");
}

#[test]
fn grpc_is_left_out_with_a_warning() {
    let settings = settings("otel.trace_exporter.otlp-grpc = { endpoint = 'http://x:4317' }", &|_| None).unwrap();
    assert!(!settings.is_on());
    let [warning] = &settings.warnings[..] else { panic!("{:?}", settings.warnings) };
    assert!(warning.starts_with("`otel.trace_exporter`: `otlp-grpc` is not supported"), "{warning}");
}

#[test]
fn statsig_and_metrics_of_disabled_analytics_are_not_exported() {
    for otel in [
        "otel.metrics_exporter = 'statsig'",
        "otel.exporter = 'statsig'",
        "analytics.enabled = false\notel.metrics_exporter.otlp-http = { endpoint = 'http://x' }",
    ] {
        assert!(!settings(otel, &|_| None).unwrap().is_on(), "{otel}");
    }
}

#[tokio::test]
async fn the_environment_names_the_parent_of_spans_without_one() {
    let collector = Collector::start().await;
    let otel = format!("otel.trace_exporter.otlp-http = {{ endpoint = '{}' }}", collector.url);
    let env = |name: &str| match name {
        "TRACEPARENT" => Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        "TRACESTATE" => Some("a=b".into()),
        _ => None,
    };
    let telemetry = Telemetry::start(settings(&otel, &env).unwrap());
    let span = telemetry.server_span("turn", None, Vec::new());
    let context = span.context().unwrap();
    assert!(context.traceparent().starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
    assert_eq!(context.tracestate(), Some("a=b"));
}
