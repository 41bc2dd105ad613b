//! `cargo xtask docs`: writes the generated parts of the documents. The tests that compare them also write them.

use std::process::Command;

use anyhow::Result;

use crate::command::finish;

/// The packages, test programs and tests that write, in this order.
const WRITERS: &[(&str, &str, &str)] = &[
    ("loomd-config", "it", "documented::the_document_lists_every_key"),
    ("loomd-protocol", "documented", "the_document_lists_every_method"),
    ("loomd", "e2e", "documents::written::"),
];

pub fn write() -> Result<()> {
    for (package, program, tests) in WRITERS {
        let test = ["test", "--quiet", "--package", package, "--test", program, tests];
        // One at a time: several write to the same document.
        finish(
            Command::new(env!("CARGO"))
                .args(test)
                .args(["--", "--test-threads=1"])
                .env("LOOMD_RECORD_DOCS", "1")
                .current_dir(crate::root()),
        )?;
    }
    Ok(())
}
