import { computed, signal } from "@preact/signals";

/** The page's own addresses (src/operator/http/page.ts serves them). */
export type Route =
  | { readonly screen: "now" | "bays" | "timeline" | "log" | "system" | "handover" | "login" | "missing" }
  | { readonly screen: "vehicle" | "event"; readonly id: string };

const PLAIN = {
  "/": "now",
  "/bays": "bays",
  "/timeline": "timeline",
  "/log": "log",
  "/system": "system",
  "/handover": "handover",
  "/login": "login",
} as const;

function routeOf(path: string): Route {
  if (path in PLAIN) return { screen: PLAIN[path as keyof typeof PLAIN] };
  const [, kind, id] = /^\/(vehicles|events)\/([^/]+)$/.exec(path) ?? [];
  if (kind === undefined || id === undefined) return { screen: "missing" };
  return { screen: kind === "vehicles" ? "vehicle" : "event", id: decoded(id) };
}

/** A text that is not an encoded one stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const vehiclePath = (id: string): string => `/vehicles/${encodeURIComponent(id)}`;
export const eventPath = (id: string): string => `/events/${encodeURIComponent(id)}`;

/** Path and query of the screen that is shown. */
export const address = signal(`${location.pathname}${location.search}`);
export const path = computed(() => address.value.split("?")[0] ?? "/");
export const query = computed(() => new URLSearchParams(address.value.split("?")[1] ?? ""));
export const route = computed(() => routeOf(path.value));

export function go(to: string, isReplacement = false): void {
  if (isReplacement) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  address.value = to;
  if (isReplacement) return;
  scrollTo(0, 0);
  // A screen reader reads the new screen from its heading.
  requestAnimationFrame(() => document.querySelector<HTMLElement>("main h1")?.focus());
}

/** Follows the browser's buttons and the links of the page. */
export function followLinks(): void {
  addEventListener("popstate", () => (address.value = `${location.pathname}${location.search}`));
  document.addEventListener("click", (click) => {
    const link = click.target instanceof Element ? click.target.closest("a") : null;
    if (link === null || click.defaultPrevented || click.button !== 0) return;
    if (click.metaKey || click.ctrlKey || click.shiftKey || link.target !== "" || link.download !== "")
      return;
    if (link.origin !== location.origin || link.pathname.startsWith("/api/") || link.hash !== "") return;
    click.preventDefault();
    go(`${link.pathname}${link.search}`);
  });
}
