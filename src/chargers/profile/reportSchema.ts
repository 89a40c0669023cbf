import * as z from "zod";

/** A value that the charger reports and that is sent back to it, by the name that templates use for it. */
export const report = z.strictObject({
  topic: z
    .string()
    .min(1)
    .describe("Where it is reported, as plain text; {name} puts in a parameter. Required."),
  pattern: z
    .string()
    .min(1)
    .describe("What the whole value has to match; other values are not kept. Required."),
  when: z
    .enum(["now", "taken"])
    .prefault("now")
    .describe(
      "The latest value, or the one that held when the first command after a release took control. Default now.",
    ),
  otherwise: z
    .string()
    .optional()
    .describe(
      "The value where none is known; {name} puts in a parameter, {maxCurrent} the maximum. Left out: what has it is not sent.",
    ),
  keeps: z
    .string()
    .optional()
    .describe(
      "For taken: a value that counts as the owner's also when it is reported during a level, and is then not overwritten. Left out: none.",
    ),
});

/** A topic that shows what was commanded on another one. */
export const shownCommand = z.strictObject({
  told: z.string().min(1).describe("The topic of the command. Required."),
  shown: z.string().min(1).describe("The topic that reports it as it stands. Required."),
});
