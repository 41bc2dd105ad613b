//! The pages that the browser shows at the end of a login.

use super::Failure;

pub(super) fn signed_in() -> String {
    page("Signed in", "<p>You are signed in. You can close this page and go back to where you came from.</p>")
}

pub(super) fn failed(failure: &Failure) -> String {
    let (message, code) = (escaped(&failure.message), escaped(&failure.code));
    page("Sign-in failed", &format!("<p>{message}</p>\n<p>Code: <code>{code}</code></p>"))
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>body {{ font: 16px/1.5 system-ui, sans-serif; margin: 15vh auto; max-width: 32em; padding: 0 1em }}</style>\n\
         <h1>{title}</h1>\n{body}\n</html>\n"
    )
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_text_is_escaped() {
        let page = failed(&Failure::new("<i>", "No <b>\"entry\"</b> & 'more'"));
        assert!(page.contains("No &lt;b&gt;&quot;entry&quot;&lt;/b&gt; &amp; &#39;more&#39;"), "{page}");
        assert!(page.contains("<code>&lt;i&gt;</code>"), "{page}");
    }
}
