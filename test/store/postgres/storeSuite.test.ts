import { describe } from "vitest";

import { postgresMissing } from "../../support/postgres.ts";
import { storeSuite } from "../storeSuite.ts";
import { aCluster, openedSite } from "./state.ts";

describe.skipIf(postgresMissing() !== null)("PostgreSQL", () => {
  const cluster = aCluster();
  storeSuite(() => openedSite(cluster));
});
