import { computed, signal } from "@preact/signals";

import type { PageWindow } from "./live.ts";

/** True: the listener of a fleet. `/` is the list of its sites, and `/sites/ID/` begins every address of a site. */
const isFleet = document.documentElement.dataset["fleet"] !== undefined;
/** Path before every address of the site. Empty: the listener has one site, or this is the list of a fleet. */
export const base = (isFleet ? /^\/sites\/[^/]+/.exec(location.pathname)?.[0] : undefined) ?? "";
/** True: this is the list of the sites of a fleet. */
export const isList = isFleet && base === "";

/** The page's own addresses (src/operator/http/page.ts serves them). */
export type Route =
  | {
      readonly screen:
        | "now"
        | "bays"
        | "timeline"
        | "log"
        | "system"
        | "handover"
        | "login"
        | "missing"
        | "sites";
    }
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
  if (isList) return { screen: path === "/" ? "sites" : path === "/login" ? "login" : "missing" };
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

/** Link to an address of the page. */
export const linkTo = (to: string): string => `${base}${to}`;
export const vehiclePath = (id: string): string => linkTo(`/vehicles/${encodeURIComponent(id)}`);
export const eventPath = (id: string): string => linkTo(`/events/${encodeURIComponent(id)}`);

const current = (): string => `${location.pathname.slice(base.length) || "/"}${location.search}`;

/** Path and query of the screen that is shown, without the path of the site. */
export const address = signal(current());
export const path = computed(() => address.value.split("?")[0] ?? "/");
export const query = computed(() => new URLSearchParams(address.value.split("?")[1] ?? ""));
export const route = computed(() => routeOf(path.value));

export function go(to: string, isReplacement = false): void {
  if (isReplacement) history.replaceState(null, "", linkTo(to));
  else history.pushState(null, "", linkTo(to));
  address.value = to;
  if (isReplacement) return;
  scrollTo(0, 0);
  // A screen reader reads the new screen from its heading.
  requestAnimationFrame(() => document.querySelector<HTMLElement>("main h1")?.focus());
}

/** Follows the browser's buttons and the links of the page. */
export function followLinks(): void {
  addEventListener("popstate", () => (address.value = current()));
  document.addEventListener("click", (click) => {
    const link = click.target instanceof Element ? click.target.closest("a") : null;
    if (link === null || click.defaultPrevented || click.button !== 0) return;
    if (click.metaKey || click.ctrlKey || click.shiftKey || link.target !== "" || link.download !== "")
      return;
    if (link.origin !== location.origin || link.hash !== "" || !link.pathname.startsWith(`${base}/`)) return;
    const to = link.pathname.slice(base.length);
    // Another site has data of its own, so the browser loads its page.
    if (to.startsWith("/api/") || (isList && to.startsWith("/sites/"))) return;
    click.preventDefault();
    go(`${to}${link.search}`);
  });
}

export const browserWindow: PageWindow = {
  isHidden: () => document.hidden,
  onHiddenChange: (listener) => document.addEventListener("visibilitychange", listener),
  beforePicture: (listener) => void requestAnimationFrame(listener),
};
