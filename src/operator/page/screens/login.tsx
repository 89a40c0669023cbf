import { useState } from "preact/hooks";

import { post, Refused } from "../api.ts";
import { Title } from "../parts.tsx";
import { query } from "../router.ts";
import { person, signedIn } from "../store.ts";
import { t } from "../texts.ts";

/** Signs in. With the code of the first link it adds the first user. */
export function Login() {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  const once = query.value.get("once");
  const words = t.login;

  const submit = async (): Promise<void> => {
    setBusy(true);
    setTrouble("");
    try {
      await post("session", { name, password, ...(once === null ? {} : { once }) });
      await signedIn();
    } catch (error) {
      setTrouble(
        error instanceof Refused ? [error.message, error.detail].filter(Boolean).join(". ") : String(error),
      );
    } finally {
      setBusy(false);
    }
  };

  if (person.value?.via === "open")
    return (
      <div class="login">
        <p>{words.open}</p>
        <a class="button strong" href="/">
          {words.toNow}
        </a>
      </div>
    );
  return (
    <form
      class="login"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Title>{once === null ? words.title : words.first}</Title>
      <label>
        <span>{words.name}</span>
        <input
          type="text"
          autoComplete="username"
          required
          value={name}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </label>
      <label>
        <span>{words.password}</span>
        <input
          type="password"
          autoComplete={once === null ? "current-password" : "new-password"}
          required
          value={password}
          onInput={({ currentTarget }) => setPassword(currentTarget.value)}
        />
      </label>
      <p class="problem" role="alert">
        {trouble}
      </p>
      <button class="strong" disabled={isBusy}>
        {once === null ? words.submit : words.submitFirst}
      </button>
    </form>
  );
}
