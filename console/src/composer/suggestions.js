// Suggestions above the message: files after `@`, commands after `/`, skills after `$`.
import { html, useEffect, useState } from "../html.js";
import { client } from "../live.js";
import { COMMANDS } from "./slash.js";

const MOST = 8;

export function Suggestions({ box, text, cwd, commands, write }) {
  const [found, setFound] = useState([]);
  const [at, setAt] = useState(0);
  const word = text.slice(0, box.current?.selectionStart ?? text.length).match(/(?:^|\s)([@$][^\s]*|\/[a-z]*)$/)?.[1] ?? "";
  useEffect(() => {
    let current = true;
    setAt(0);
    if (!word || (word[0] === "/" && !(commands && text.startsWith("/")))) setFound([]);
    else find(word, cwd).then((all) => current && setFound(all.slice(0, MOST)), () => current && setFound([]));
    return () => (current = false);
  }, [word]);
  useEffect(() => {
    const element = box.current;
    if (!element || !found.length) return;
    const onKey = (event) => {
      if (event.key === "ArrowDown") setAt((at + 1) % found.length);
      else if (event.key === "ArrowUp") setAt((at - 1 + found.length) % found.length);
      else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey && word.length > 1 && found[at].value !== word)) take(found[at]);
      else if (event.key === "Escape") setFound([]);
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    element.addEventListener("keydown", onKey, true);
    return () => element.removeEventListener("keydown", onKey, true);
  });
  const take = (entry) => {
    const end = box.current.selectionStart ?? text.length;
    write(`${text.slice(0, end - word.length)}${entry.value} ${text.slice(end)}`);
    setFound([]);
    box.current.focus();
  };
  if (!found.length) return null;
  return html`<ul class="suggestions" role="listbox" aria-label="Suggestions">
    ${found.map((entry, index) => html`<li key=${entry.value} role="option" aria-selected=${index === at} onPointerDown=${(event) => (event.preventDefault(), take(entry))}>
      <span>${entry.value}</span> <span class="hint">${entry.hint}</span></li>`)}
  </ul>`;
}

async function find(word, cwd) {
  if (word[0] === "/") return Object.entries(COMMANDS).filter(([name]) => name.startsWith(word.slice(1))).map(([name, [hint]]) => ({ value: `/${name}`, hint }));
  if (!cwd) return [];
  if (word[0] === "@") {
    const answer = await client.request("fuzzyFileSearch", { query: word.slice(1), roots: [cwd], cancellationToken: "console" });
    return answer.files.map((file) => ({ value: `@${file.path}`, hint: "" }));
  }
  const answer = await client.request("skills/list", { cwds: [cwd] });
  const skills = answer.data.flatMap((entry) => entry.skills);
  return skills.filter((skill) => skill.name.startsWith(word.slice(1))).map((skill) => ({ value: `$${skill.name}`, hint: skill.description?.slice(0, 60) ?? "" }));
}
