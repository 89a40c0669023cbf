import { evcc } from "./makes/evcc.ts";
import { everestLegacy, everestV1 } from "./makes/everest.ts";
import { goE } from "./makes/goE.ts";
import type { Make, Params } from "./makes/make.ts";
import { ocpp } from "./makes/ocpp.ts";
import { openEvse } from "./makes/openEvse.ts";
import { openWb } from "./makes/openWb.ts";
import { smartEvse } from "./makes/smartEvse.ts";
import { victron } from "./makes/victron.ts";
import { warp } from "./makes/warp.ts";

/** Every make that can be simulated, by the name of its profile; the parameters are those of the profile. */
export const MAKES: ReadonlyMap<string, (params: Params) => Make> = new Map([
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
