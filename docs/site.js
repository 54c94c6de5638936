// Names and roles that the theme leaves out, for screen readers. The theme adds the copy buttons while a page is read.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
const mend = () => document.querySelectorAll("nav.md-code__nav").forEach((bar) => bar.setAttribute("role", "presentation"));
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
mend();
