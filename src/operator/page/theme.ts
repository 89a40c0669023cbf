import { signal } from "@preact/signals";

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "setpointd.theme";
export const theme = signal<Theme>("auto");

/** `auto` follows the system. */
export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  if (chosen === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // A browser without storage forgets the choice.
  }
}

export function restoreTheme(): void {
  try {
    const kept = THEMES.find((name) => name === localStorage.getItem(KEY));
    if (kept !== undefined) setTheme(kept);
  } catch {
    // A browser without storage starts with the system's colours.
  }
}
