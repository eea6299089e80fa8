"use strict";
const $ = (id) => document.getElementById(id);
const show = (id, is_shown) => { $(id).hidden = !is_shown; };
let file = null;
let timer = 0;

function choose(chosen) {
  if (!chosen) return;
  file = chosen;
  $("chosen").textContent = `${file.name}, ${file.size.toLocaleString("en")} bytes`;
  $("start").disabled = false;
}

function fail(text) {
  $("error").textContent = text;
  show("error", true);
}

function draw(job) {
  const is_running = job.state === "running";
  show("progress", is_running);
  show("cancel", is_running);
  $("start").disabled = is_running || !file;
  $("said").textContent = job.said || "";
  if (job.state === "failed") fail(job.said);
  if (job.state === "canceled") fail("Canceled; nothing was written.");
  show("done", job.state === "done");
  if (job.state === "done") {
    $("answer").textContent = job.answer;
    $("result").download = job.result;
    $("report").src = "report";
  }
  document.body.dataset.state = job.state;
  if (is_running) timer = setTimeout(poll, 300);
}

async function ask(where, options) {
  try {
    const answer = await fetch(where, options);
    if (!answer.ok) throw new Error(await answer.text());
    return await answer.json();
  } catch (error) {
    fail(error instanceof TypeError ? "tflite-memopt serve has ended" : error.message);
    document.body.dataset.state = "lost";
    return null;
  }
}

async function poll() {
  const job = await ask("job");
  if (job) draw(job);
}

$("file").addEventListener("change", () => choose($("file").files[0]));
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    $("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") choose(event.dataTransfer.files[0]);
  });
}
$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  clearTimeout(timer);
  show("error", false);
  show("done", false);
  const given = new URLSearchParams({ name: file.name, target: $("target").value, budget: $("budget").value });
  const job = await ask(`job?${given}`, { method: "PUT", body: file });
  if (job) draw(job);
});
$("cancel").addEventListener("click", async () => {
  clearTimeout(timer);
  const job = await ask("job", { method: "DELETE" });
  if (job) draw(job);
});
ask("targets").then((found) => {
  for (const name of found ? found.names : []) $("targets").append(new Option(name, name));
  document.body.dataset.ready = "yes";
  poll();
});
