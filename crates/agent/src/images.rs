pub(crate) struct Problem(String);
impl Problem { pub fn note(&self) -> String { self.0.clone() } }
pub(crate) fn data_url(path: &std::path::Path) -> Result<std::sync::Arc<str>, Problem> { Err(Problem(format!("{path:?}"))) }
pub(crate) fn view(path: &std::path::Path) -> Result<std::sync::Arc<str>, String> { Err(format!("{path:?}")) }
