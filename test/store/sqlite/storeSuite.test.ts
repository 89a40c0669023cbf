import { storeSuite } from "../storeSuite.ts";
import { aDirectory, opened } from "./state.ts";

storeSuite(() => {
  const directory = aDirectory();
  return async () => opened(directory);
});
