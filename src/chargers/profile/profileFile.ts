import { mistakesIn } from "./consistency.ts";
import { fields } from "./schema.ts";

/** A charger make as data: `config/profiles/NAME.yaml`. The engine, not the file, owns safety. */
export const profileFile = fields.superRefine((profile, context) => {
  for (const { path, message } of mistakesIn(profile))
    context.addIssue({ code: "custom", path: [...path], message });
});
