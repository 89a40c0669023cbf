import { Title } from "../parts.tsx";
import { t } from "../texts.ts";

export const EventScreen = ({ id }: { readonly id: string }) => (
  <>
    <Title>{id}</Title>
    <p class="quiet">{t.soon}</p>
  </>
);
