//! Telemetry as a configuration sets it up.

use loomd_config::config_toml::ConfigToml;
use loomd_telemetry::{Settings, SettingsError, Telemetry};
use loomd_testkit::Collector;

/// Telemetry with `[otel]` as written, where `URL` is the collector's.
pub fn telemetry(collector: &Collector, otel: &str) -> Telemetry {
    Telemetry::start(settings(&otel.replace("URL", &collector.url), &|_| None).unwrap())
}

pub fn settings(otel: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Settings, SettingsError> {
    let config: ConfigToml = toml::from_str(otel).unwrap();
    Settings::new(&config, "1.2.3", env)
}
