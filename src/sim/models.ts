import { evcc } from "./models/evcc.ts";
import { everestLegacy, everestV1 } from "./models/everest.ts";
import { goE } from "./models/goE.ts";
import type { Model, Params } from "./models/model.ts";
import { ocpp } from "./models/ocpp.ts";
import { openEvse } from "./models/openEvse.ts";
import { openWb } from "./models/openWb.ts";
import { smartEvse } from "./models/smartEvse.ts";
import { victron } from "./models/victron.ts";
import { warp } from "./models/warp.ts";

/** Every make that can be simulated, by the name of its profile; the parameters are those of the profile. */
export const MODELS: ReadonlyMap<string, (params: Params) => Model> = new Map([
  ["go-e-v2", goE],
  ["openevse-override", openEvse],
  ["warp", warp],
  ["openwb-secondary", openWb],
  ["evcc", evcc],
  ["everest-api-v1", everestV1],
  ["everest-api-legacy", everestLegacy],
  ["smartevse", smartEvse],
  ["victron-evcs", victron],
  ["ocpp2mqtt", ocpp],
]);
