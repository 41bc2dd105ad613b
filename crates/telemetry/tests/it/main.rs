//! Exports to a collector on the loopback interface, which decodes what it gets.

mod collector;
mod decode;
mod exports;
mod settings;
