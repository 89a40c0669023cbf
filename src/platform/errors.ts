/** Text of a caught value. Not every library throws an `Error`. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
