import type { Dialect } from "./dialect.ts";
import { type DialectOptions, partnerDialect } from "./partner/dialect.ts";

/** The dialect of the configured event service. Another dialect is chosen here. */
export const dialectOf = ({ vtn, report }: DialectOptions): Dialect => partnerDialect({ vtn, report });
