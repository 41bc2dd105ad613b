//! Turns of loaded threads: how they follow each other, what can be said to them, and what is left of them.

mod agent_tree;
mod approving;
mod calls;
mod control;
mod faulty;
mod hooks;
mod joining;
mod persistence;
mod telling;
mod wires;
mod world;
