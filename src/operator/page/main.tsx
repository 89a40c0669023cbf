import { render } from "preact";

import { App } from "./app.tsx";
import { restoreTheme } from "./parts.tsx";
import { followLinks } from "./router.ts";
import { start } from "./store.ts";

const root = document.querySelector("#app");
if (root !== null) {
  restoreTheme();
  followLinks();
  start();
  root.replaceChildren();
  render(<App />, root);
}
