"use strict";
// Comfort only: everything here also works without it.

const say = (near, text) => {
  let line = near.querySelector(".refused.live");
  if (!line) {
    line = document.createElement("p");
    line.className = "refused live";
    line.setAttribute("role", "alert");
    near.prepend(line);
  }
  line.textContent = text;
};

const showCopy = (within) => {
  for (const button of within.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
};
showCopy(document);
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select and copy";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1600);
});

for (const form of document.querySelectorAll("form.paste")) {
  const files = form.querySelector("input[type=file]");
  const text = form.querySelector("textarea");
  form.addEventListener("submit", (event) => {
    const size = [...files.files].reduce((sum, file) => sum + file.size, 0) + text.value.length;
    if (size > Number(form.dataset.limit)) {
      event.preventDefault();
      say(form, "That is more than 200 MB. Send the part around the first error, or the log compressed with gzip.");
    } else if (!files.files.length && !text.value.trim()) {
      event.preventDefault();
      say(form, "There is nothing to read yet. Paste the log or choose a file.");
      text.focus();
    } else {
      const button = form.querySelector("button.go");
      button.textContent = "Reading…";
      form.setAttribute("aria-busy", "true");
    }
  });
}

// The log beside the verdict opens at the line that failed first, high enough to be seen before anything is scrolled.
const beside = document.querySelector(".evidence");
const failed = beside && beside.querySelector(".log .first");
if (failed && !location.hash && getComputedStyle(beside).overflowY === "auto") {
  beside.scrollTop = failed.offsetTop - 150;
}

// A page that the browser brings back is not busy any more.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form.paste[aria-busy]")) {
    form.removeAttribute("aria-busy");
    form.querySelector("button.go").textContent = form.dataset.go;
  }
});

const target = document.querySelector("form.paste input[type=file]");
if (target) {
  const inside = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
  document.addEventListener("dragover", (event) => {
    if (inside(event)) { event.preventDefault(); document.body.classList.add("dropping"); }
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    if (!inside(event)) return;
    event.preventDefault();
    document.body.classList.remove("dropping");
    target.files = event.dataTransfer.files;
    target.closest("form").scrollIntoView({ block: "center" });
    target.closest("form").querySelector("button.go").focus();
  });
}

// The sizing answer follows the form while it is filled in.
const sizing = document.querySelector("[data-size-form]");
if (sizing) {
  const answer = document.getElementById("answer");
  let timer = 0;
  let newest = 0;
  const follow = async () => {
    const mine = ++newest;
    answer.classList.add("busy");
    try {
      const reply = await fetch("/size?part=answer", { method: "POST", body: new URLSearchParams(new FormData(sizing)) });
      const html = await reply.text();
      if (mine === newest && (reply.ok || reply.status === 400)) {
        answer.innerHTML = html;
        showCopy(answer);
        const short = document.querySelector(".below a");
        const verdict = answer.querySelector(".fits");
        if (short) short.textContent = verdict ? verdict.textContent : "It cannot be answered";
      }
    } finally {
      if (mine === newest) answer.classList.remove("busy");
    }
  };
  const soon = () => {
    const asked = sizing.elements.model.value.trim() || sizing.elements.config.value.trim();
    clearTimeout(timer);
    if (asked) timer = setTimeout(follow, 450);
  };
  // Half a model's name is nobody's model: it is asked for when the field is left.
  sizing.addEventListener("input", (event) => { if (event.target.name !== "model") soon(); });
  sizing.elements.model.addEventListener("change", soon);
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const box = document.querySelector("[data-search], #paste, [data-size]");
    if (box) { event.preventDefault(); box.focus(); }
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form && event.target.tagName === "TEXTAREA") {
    event.target.form.requestSubmit();
  }
});
