"use strict";
// What the page can do beyond being read. Without this script everything is there, and unfolds.
(() => {
  const root = document.documentElement;
  root.dataset.script = "on";

  // The theme is set before anything is drawn. Some browsers keep nothing for files.
  const kept = (value) => {
    try {
      if (value) localStorage.setItem("convoke-theme", value);
      return localStorage.getItem("convoke-theme");
    } catch {
      return null;
    }
  };
  if (["light", "dark"].includes(kept())) root.dataset.theme = kept();
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

  addEventListener("DOMContentLoaded", () => {
    const byId = (id) => document.getElementById(id);
    const all = (selector, from = document) => [...from.querySelectorAll(selector)];
    const [search, found, fold, theme] = ["search", "found", "fold", "theme"].map(byId);
    const items = all("[data-item]");
    const groups = all("section.turn, details.agent");
    const rows = new Map(all(".bars li > a").map((row) => [row.hash.slice(1), row]));

    // Theme.
    const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
    theme.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      kept(root.dataset.theme);
      nameTheme();
    });
    nameTheme();

    // Folding.
    const folds = all("details[data-fold]");
    const nameFold = () => {
      const unfolded = folds.every((one) => one.open);
      fold.textContent = unfolded ? "Fold all" : "Unfold all";
      fold.setAttribute("aria-pressed", String(unfolded));
    };
    fold.addEventListener("click", () => {
      const open = !folds.every((one) => one.open);
      for (const one of folds) one.open = open;
      nameFold();
    });
    for (const one of folds) one.addEventListener("toggle", nameFold);
    nameFold();

    // Search: hides what does not match, unfolds what does, and puts all back afterwards.
    const texts = new Map();
    const textOf = (element) => {
      if (!texts.has(element)) texts.set(element, element.textContent.toLowerCase());
      return texts.get(element);
    };
    const unfolded = new Set();
    const highlight = (words) => {
      if (!CSS.highlights) return;
      const ranges = [];
      const walker = document.createTreeWalker(byId("run"), NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); words.length && node && ranges.length < 2000; node = walker.nextNode()) {
        const text = node.data.toLowerCase();
        if (text.length !== node.data.length) continue;
        for (const word of words) {
          for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
            const range = new Range();
            range.setStart(node, at);
            range.setEnd(node, at + word.length);
            ranges.push(range);
          }
        }
      }
      CSS.highlights.set("found", new Highlight(...ranges));
    };
    const filter = (query) => {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean);
      const matches = (element) => words.every((word) => textOf(element).includes(word));
      // An agent that is found by its name is found with all that it did.
      const named = new Set(groups.filter((group) => group.tagName === "DETAILS" && matches(group.firstElementChild)));
      const isNamed = (item) => groups.some((group) => named.has(group) && group.contains(item));
      root.toggleAttribute("data-searching", words.length > 0);
      for (const item of items) item.hidden = !matches(item) && !(named.size && isNamed(item));
      for (const group of groups) group.hidden = words.length > 0 && !group.querySelector("[data-item]:not([hidden])");
      for (const one of unfolded) one.open = false;
      unfolded.clear();
      if (words.length) {
        for (const one of all("#run details:not([open])")) {
          if (words.some((word) => textOf(one).includes(word))) {
            one.open = true;
            unfolded.add(one);
          }
        }
      }
      for (const [id, row] of rows) {
        const target = byId(id);
        row.parentElement.hidden = Boolean(target && target.closest("[hidden]"));
      }
      const shown = items.filter((item) => !item.closest("[hidden]")).length;
      found.textContent = words.length ? `${shown} of ${items.length}` : "";
      root.dataset.shown = String(shown);
      highlight(words);
    };
    const remember = (query) => {
      try {
        history.replaceState(null, "", query ? `#q=${encodeURIComponent(query)}` : "#");
      } catch {
        // A page that may not change its address still searches.
      }
    };
    let waiting = 0;
    search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        filter(search.value);
        remember(search.value);
      }, 80);
    });

    // Where one is.
    let current = null;
    const mark = (row) => {
      for (const other of all(".bars [aria-current]")) other.removeAttribute("aria-current");
      if (!row) return;
      row.setAttribute("aria-current", "true");
      const list = row.closest(".bars");
      const [inside, outside] = [row.getBoundingClientRect(), list.getBoundingClientRect()];
      if (inside.top < outside.top + 30 || inside.bottom > outside.bottom) {
        list.scrollTop += inside.top - outside.top - outside.height / 3;
      }
    };
    const go = (item) => {
      if (current) delete current.dataset.current;
      current = item;
      if (!item) return;
      item.dataset.current = "";
      for (let up = item; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
      item.scrollIntoView({ block: "start" });
      mark(rows.get(item.id));
    };
    const inView = new Set();
    const watch = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes) {
        if (isIntersecting) inView.add(target);
        else inView.delete(target);
      }
      const here = inView.has(current) ? current : items.find((item) => inView.has(item));
      if (here) mark(rows.get(here.id));
    }, { rootMargin: "-56px 0px -75% 0px" });
    for (const item of items) watch.observe(item);

    // Addresses: #e12 is a thing that happened, #q=word a search.
    const follow = () => {
      const hash = location.hash.slice(1);
      if (hash.startsWith("q=")) {
        let query = hash.slice(2);
        try { query = decodeURIComponent(query); } catch { /* It is searched for as it stands. */ }
        search.value = query;
        filter(query);
        return;
      }
      const target = hash && byId(hash);
      if (!target || !byId("run").contains(target)) return;
      if (target.closest("[hidden]")) {
        search.value = "";
        filter("");
      }
      go(target);
      const inside = target.querySelector(":scope > .what > details[data-fold]");
      if (inside) inside.open = true;
    };
    addEventListener("hashchange", follow);
    follow();

    // Keys.
    const step = (by) => {
      const visible = items.filter((item) => item.checkVisibility());
      const at = visible.indexOf(current);
      const top = visible.findIndex((item) => item.getBoundingClientRect().top > 60);
      const next = at >= 0 ? at + by : Math.max(top, 0);
      if (visible[next]) go(visible[next]);
    };
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape") {
        search.value = "";
        search.blur();
        filter("");
        remember("");
        return;
      }
      if (event.target.closest("input, textarea")) return;
      if (event.key === "/") {
        event.preventDefault();
        search.focus();
        search.select();
      } else if (event.key === "j") step(1);
      else if (event.key === "k") step(-1);
      else if (event.key === "o" && current) {
        const inside = current.querySelector("details");
        if (inside) inside.open = !inside.open;
      }
    });

    // Copying.
    addEventListener("click", async (event) => {
      const button = event.target.closest(".copy");
      if (!button) return;
      const text = button.closest(".block").querySelector("pre");
      let said = "Copied";
      try {
        await navigator.clipboard.writeText(text.textContent);
      } catch {
        getSelection().selectAllChildren(text);
        said = "Selected";
      }
      button.textContent = said;
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });

    // Paper does not unfold.
    let closed = [];
    addEventListener("beforeprint", () => {
      closed = all("details:not([open])");
      for (const one of closed) one.open = true;
    });
    addEventListener("afterprint", () => { for (const one of closed) one.open = false; });

    root.dataset.ready = "yes";
  });
})();
