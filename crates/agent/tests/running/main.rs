//! Turns of loaded threads: their order, their input, their items and records.

mod agent_tree;
mod approving;
mod calls;
mod control;
mod faulty;
mod hooks;
mod joining;
mod persistence;
mod shared;
mod spending;
mod tool_outputs;
mod wires;
mod world;
