//! Formats patches as text, according to the grammar for models.

use std::fmt::{self, Display, Formatter};

use crate::parse::{ADD, BEGIN, CHUNK, Chunk, DELETE, END, END_OF_FILE, Hunk, Line, MOVE, Patch, UPDATE};

impl Display for Patch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{BEGIN}")?;
        for hunk in &self.hunks {
            hunk.fmt(f)?;
        }
        writeln!(f, "{END}")
    }
}

impl Display for Hunk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add { path, content } => {
                writeln!(f, "{ADD}{path}")?;
                content.lines().try_for_each(|line| writeln!(f, "+{line}"))
            }
            Self::Delete { path } => writeln!(f, "{DELETE}{path}"),
            Self::Update { path, move_to, chunks } => {
                writeln!(f, "{UPDATE}{path}")?;
                if let Some(path) = move_to {
                    writeln!(f, "{MOVE}{path}")?;
                }
                chunks.iter().try_for_each(|chunk| chunk.fmt(f))
            }
        }
    }
}

impl Display for Chunk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.context {
            Some(context) => writeln!(f, "{CHUNK} {context}")?,
            None => writeln!(f, "{CHUNK}")?,
        }
        for line in &self.lines {
            match line {
                Line::Context(text) => writeln!(f, " {text}")?,
                Line::Added(text) => writeln!(f, "+{text}")?,
                Line::Removed(text) => writeln!(f, "-{text}")?,
            }
        }
        if self.end_of_file { writeln!(f, "{END_OF_FILE}") } else { Ok(()) }
    }
}
