//! Turns of loaded threads: how they follow each other, what can be said to them, and what is left of them.

mod calls;
mod control;
mod family;
mod faulty;
mod hooks;
mod joining;
mod keeping;
mod telling;
mod wires;
mod world;
