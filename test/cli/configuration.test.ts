import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { environmentOf } from "../../src/cli/configuration.ts";

/** What a unit of the package says: its configuration, its state folder, its folder of secrets. */
function placesOf(name: string) {
  const unit = readFileSync(new URL(`../../systemd/${name}`, import.meta.url), "utf8");
  const one = (pattern: RegExp): string | undefined => pattern.exec(unit)?.[1];
  const stations = one(/^LoadCredential=station:(.+)$/m);
  return {
    file: one(/^ExecStart=.* -c (.+)$/m) ?? "",
    env: {
      STATE_DIRECTORY: `/var/lib/${one(/^StateDirectory=(.+)$/m)}`,
      CREDENTIALS_DIRECTORY: one(/^LoadCredential=[\w-]+:(.+)\/[\w-]+$/m),
      ...(stations === undefined ? {} : { STATIONS_DIRECTORY: stations }),
    },
  };
}

test.each(["setpointd.service", "setpointd-fleet.service", "setpointd-ocpp.service"])(
  "a verb finds the state and the secrets of %s where the service has them",
  (name) => {
    const { file, env } = placesOf(name);
    expect(environmentOf(file, {}, () => false)).toEqual(env);
    expect(environmentOf(file, { STATE_DIRECTORY: "/elsewhere" }, () => false)).toEqual({
      ...env,
      STATE_DIRECTORY: "/elsewhere",
    });
    expect(environmentOf("/home/anna/site.yaml", {}, () => true)).toEqual({});
  },
);

test("doctor and status -c find the status socket of the service that runs, and of a daemon without systemd", () => {
  const unit = readFileSync(new URL("../../systemd/setpointd.service", import.meta.url), "utf8");
  const folder = `/run/${/^RuntimeDirectory=(.+)$/m.exec(unit)?.[1]}`;
  const { file, env } = placesOf("setpointd.service");
  expect(environmentOf(file, {}, (path) => path === folder)).toEqual({ ...env, RUNTIME_DIRECTORY: folder });
  expect(environmentOf(file, {}, () => false)).toEqual(env);
});
