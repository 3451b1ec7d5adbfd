// Adds comfort only: every page reads and works without this file.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const secure = location.protocol === "https:" ? "; secure" : "";
  const keep = (name, value) => {
    document.cookie = `${name}=${encodeURIComponent(value)}; path=/; samesite=lax; max-age=31536000${secure}`;
  };
  const say = (text) => {
    const place = document.getElementById("say");
    if (place) place.textContent = text;
  };

  // The server shows times in this zone from the next page on.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && navigator.cookieEnabled) keep("zone", zone);

  const flip = () => {
    const shown = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.dataset.theme = shown === "dark" ? "light" : "dark";
    keep("theme", root.dataset.theme);
    say(`${root.dataset.theme} colours`);
  };

  const copy = async (button) => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      return say("could not copy");
    }
    const before = button.textContent;
    button.textContent = "Copied";
    say("copied");
    setTimeout(() => { button.textContent = before; }, 1500);
  };

  // <main data-live="URL">: one event is {"values": {KEY: TEXT}, "points": {KEY: SVG-POINTS}, "say": TEXT}.
  const follow = (live) => {
    const source = new EventSource(live.dataset.live);
    source.onmessage = (event) => {
      const told = JSON.parse(event.data);
      for (const [key, value] of Object.entries(told.values || {}))
        for (const node of live.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)) node.textContent = value;
      for (const [key, value] of Object.entries(told.points || {}))
        live.querySelector(`[data-key="${CSS.escape(key)}"]`)?.setAttribute("points", value);
      if (told.say) say(told.say);
    };
    source.onerror = () => { live.dataset.stale = "yes"; };
    source.onopen = () => { delete live.dataset.stale; };
    addEventListener("pagehide", () => source.close());
  };

  // A wallet in the browser (EIP-1193) tells its address, and signs the text that the server wrote.
  const asked = async (button) => {
    const form = button.closest("form");
    try {
      const [address] = await window.ethereum.request({ method: "eth_requestAccounts" });
      if (button.dataset.wallet === "address") form.elements.address.value = address;
      else {
        const text = form.elements.message.value;
        const bytes = Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, "0"));
        form.elements.signature.value =
          await window.ethereum.request({ method: "personal_sign", params: [`0x${bytes.join("")}`, address] });
      }
    } catch {
      return say("the wallet did not answer");
    }
    form.requestSubmit();
  };

  addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-wallet]")) button.hidden = !window.ethereum;
    const live = document.querySelector("[data-live]");
    if (live) follow(live);
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.classList.contains("theme")) flip();
      if (button.dataset.copy !== undefined) copy(button);
      if (button.dataset.wallet) asked(button);
    });
  });
})();
