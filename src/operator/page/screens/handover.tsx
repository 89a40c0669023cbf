import { Title } from "../parts.tsx";
import { t } from "../texts.ts";

export const Handover = () => (
  <>
    <Title>{t.handover.title}</Title>
    <p class="quiet">{t.soon}</p>
  </>
);
