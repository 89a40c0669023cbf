import { profileFile } from "../../../src/chargers/profile/consistency.ts";
import type { Profile } from "../../../src/chargers/profile/schema.ts";

/** The least that is a profile, with other members put in or taken out (undefined). */
export const leastProfile = (members: object = {}): object => ({
  profile: "some-make",
  title: "Some make",
  params: { id: { about: "Its id." } },
  limits: { current: { min: 6, max: 32 }, zero: "pause", belowMinimum: "ignored" },
  actions: {
    setCurrent: [{ topic: "c/{id}/set", text: "{current}" }],
    pause: [{ topic: "c/{id}/set", text: "0" }],
  },
  ifWeDie: "It holds the last.",
  ...members,
});

export const aProfile = (members: object = {}): Profile => profileFile.parse(leastProfile(members));
