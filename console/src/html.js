// The view library in one place: templates (htm), components (Preact), state (signals).
import { h, render, Fragment } from "../vendor/preact.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { signal, computed, effect, batch, useSignal } from "../vendor/signals.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);
export { h, render, Fragment, useEffect, useLayoutEffect, useMemo, useRef, useState };
export { signal, computed, effect, batch, useSignal };
