//! Exports to a collector on the loopback interface, which decodes what it gets.

mod decode;
mod exports;
mod settings;
mod started;
