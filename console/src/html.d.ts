// The types of `html.js`, as far as the page needs them for checks of its requests.
export interface Signal<T = any> { value: T; peek(): T }
export const html: (strings: TemplateStringsArray, ...values: any[]) => any;
export const h: any;
export const render: any;
export const Fragment: any;
export function useEffect(effect: () => any, inputs?: any[]): void;
export function useLayoutEffect(effect: () => any, inputs?: any[]): void;
export function useMemo(make: () => any, inputs: any[]): any;
export function useRef(initial: any): { current: any };
export function useState(initial: any): [any, (value: any) => void];
export function signal(value: any): Signal;
export function computed(make: () => any): Signal;
export function useSignal(value: any): Signal;
export function effect(run: () => any): () => void;
export function batch(run: () => any): any;
