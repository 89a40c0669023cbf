import { Command, Help } from "commander";
import { expect, test } from "vitest";

import { VERBS } from "../../src/cli/program.ts";
import { instant } from "../../src/domain/units.ts";

const context = {
  config: () => undefined,
  now: () => instant(0),
  randomBytes: (count: number) => Buffer.alloc(count),
  done: () => {},
};

test.each(VERBS)(
  "--help shows $synopsis as the verb has it, without importing it",
  async ({ synopsis, load }) => {
    const command = new Command(synopsis.split(" ", 1)[0]);
    (await load())(command, context);
    expect(new Help().subcommandTerm(command)).toBe(synopsis);
  },
);
