// Keys that work everywhere on the page.
import * as state from "./state.js";
import { interrupt, attempt } from "./actions.js";

export const KEYS = [
  ["Ctrl+K or /", "search threads"],
  ["Alt+N", "new thread"],
  ["Alt+C", "show or hide the changes"],
  ["Alt+A", "go to what waits for you"],
  ["Escape", "in the message: interrupt the turn"],
  ["Enter", "send; while a turn runs, steer it"],
  ["Ctrl+Enter", "while a turn runs: queue for afterwards"],
  ["Shift+Enter", "a new line"],
];

const isTyping = (target) => target.matches?.("input, textarea, select, [contenteditable]");

export function followKeys() {
  document.addEventListener("keydown", (event) => {
    const typing = isTyping(event.target);
    if ((event.ctrlKey && event.key === "k") || (event.key === "/" && !typing)) {
      state.sidebarShown.value = true;
      focusSoon("#search");
    } else if (event.altKey && event.key === "n") {
      state.view.value = "new";
      focusSoon("#message");
    } else if (event.altKey && event.key === "c") {
      toggleChanges();
    } else if (event.altKey && event.key === "a") {
      focusSoon(".approval button, .question input, .question button");
    } else if (event.key === "Escape" && /** @type {HTMLElement} */ (event.target).id === "message" && state.open.peek()?.turn.peek()) {
      attempt(() => interrupt(state.open.peek()));
    } else {
      return;
    }
    event.preventDefault();
  });
}

export function toggleChanges() {
  state.changesShown.value = !state.changesShown.peek();
  state.keep("changesShown", state.changesShown.peek());
}

export function focusSoon(selector) {
  requestAnimationFrame(() => document.querySelector(selector)?.focus());
}
