import { Accounts } from "../operator/accounts.ts";
import { prepareDirectory, readOwn, replaceFile } from "../store/sqlite/files.ts";

/** Users and tokens of the operator's listener, in the state folder. A verb may run before the first start. */
export const accountsIn = (state: string): Accounts =>
  new Accounts(state, {
    read: readOwn,
    replace: replaceFile,
    prepare: () => prepareDirectory(state)?.reason ?? null,
  });
