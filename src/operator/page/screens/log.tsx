import { Title } from "../parts.tsx";
import { t } from "../texts.ts";

export const Log = () => (
  <>
    <Title>{t.log.title}</Title>
    <p class="quiet">{t.soon}</p>
  </>
);
