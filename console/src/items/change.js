// A change of files with its diff.
import { html } from "../html.js";
import { filesOfChanges } from "../diff.js";
import { DiffView } from "../parts/diff_view.js";
import { Fold } from "../parts/fold.js";
import { Decided } from "./decided.js";

const WORDS = { inProgress: "proposed", completed: "applied", failed: "failed", declined: "declined" };

export function Change({ item, model }) {
  const files = filesOfChanges(item.changes, model.settings.value?.cwd);
  const label = files.length === 1 ? files[0].path : `${files.length} files`;
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const removed = files.reduce((sum, file) => sum + file.removed, 0);
  return html`<article class=${`change ${item.status}`} aria-label="Change">
    <${Fold} label=${`Change ${label}`} hint=${`+${added} −${removed} · ${WORDS[item.status] ?? item.status}`}>
      ${files.map((file) => html`<${DiffView} key=${file.path} file=${file} />`)}
    <//>
    <${Decided} item=${item} model=${model} />
  </article>`;
}
