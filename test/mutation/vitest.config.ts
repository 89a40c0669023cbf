import projectConfig from "../vitest.config.ts";
import { ShortestFirst } from "./shortestFirst.ts";

/** The tests of one mutant, one file at a time, until the first failure. */
export default {
  ...projectConfig,
  test: {
    ...projectConfig.test,
    bail: 1,
    maxWorkers: 1,
    sequence: { sequencer: ShortestFirst },
    projects: projectConfig.test?.projects?.map((project) =>
      typeof project === "object" && "test" in project
        ? { ...project, test: { ...project.test, maxWorkers: 1 } }
        : project,
    ),
  },
};
