"use strict";
// Plays a recorded election: time is cut at every instant at which something happened, and messages move in between.
const data = JSON.parse(document.getElementById("data").textContent);
const [canvas, scrub, clock, now] = ["canvas", "#scrub", "#clock", "#now"].map((at) => document.querySelector(at));
const pen = canvas.getContext("2d");
const paints = { asleep: "#ffffff", candidate: "#56b4e9", passive: "#b8c0c8", leader: "#e69f00", follower: "#009e73" };
const tints = ["#0072b2", "#d55e00", "#cc79a7", "#6a5acd"];
const [FROM, TO, CLOCKWISE, SENT, RECEIVED, KIND, TEXT] = [0, 1, 2, 3, 4, 5, 6];
const instants = [...new Set(data.messages.flatMap((m) => [m[SENT], m[RECEIVED] ?? m[SENT]])
  .concat(data.states.map((s) => s[0]), [0, data.end]))].sort((a, b) => a - b);
const bySent = data.messages.map((m, i) => i).sort((a, b) => data.messages[a][SENT] - data.messages[b][SENT]);
const longest = Math.max(1, ...data.messages.map((m) => (m[RECEIVED] ?? m[SENT]) - m[SENT]));
let time = 0, playing = false, last = null;

document.getElementById("legend").innerHTML = "nodes " + ["candidate", "passive", "leader", "follower"]
  .map((name) => `<span><span class="key" style="background:${paints[name]}"></span>${name}</span>`).join(" ") + "<br>messages " +
  data.kinds.map((kind, i) => `<span><span class="key" style="background:${tints[i % 4]}"></span>${kind}</span>`).join(" ");
scrub.max = 1000;

function angle(node) {
  return data.star ? 2 * Math.PI * (node - 1) / Math.max(1, data.nodes - 1) : 2 * Math.PI * node / data.nodes;
}

function spot(turn, radius, size) {
  return [size.w / 2 + radius * Math.sin(turn), size.h / 2 - radius * Math.cos(turn)];
}

// Where a node stands at this time: states are in order of time, so the last one counts.
function standings() {
  const all = new Array(data.nodes).fill("asleep");
  for (const [at, node, state] of data.states) { if (at > time + 1e-9) break; all[node] = state; }
  return all;
}

// The first message that may still be under way.
function firstFrom(earliest) {
  let [low, high] = [0, bySent.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (data.messages[bySent[middle]][SENT] < earliest) low = middle + 1; else high = middle;
  }
  return low;
}

function underWay() {
  const found = [];
  for (let i = firstFrom(time - longest); i < bySent.length; i++) {
    const m = data.messages[bySent[i]];
    if (m[SENT] > time) break;
    if (m[RECEIVED] !== null && (m[RECEIVED] > time || (m[SENT] === time && m[RECEIVED] >= time))) found.push(m);
  }
  return found;
}

function draw() {
  const scale = window.devicePixelRatio || 1;
  const size = { w: canvas.clientWidth, h: Math.max(360, window.innerHeight - 130) };
  canvas.width = size.w * scale; canvas.height = size.h * scale; canvas.style.height = size.h + "px";
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, size.w, size.h);
  const radius = Math.min(size.w, size.h) * 0.41;
  const dot = Math.max(1.5, Math.min(19, Math.PI * radius / data.nodes * 0.6));
  const flying = underWay(), states = standings();
  pen.lineWidth = 2; pen.strokeStyle = "#d0d6dc";
  if (data.star) {
    for (let node = 1; node < data.nodes; node++) {
      pen.beginPath(); pen.moveTo(size.w / 2, size.h / 2); pen.lineTo(...spot(angle(node), radius, size)); pen.stroke();
    }
  } else { pen.beginPath(); pen.arc(size.w / 2, size.h / 2, radius, 0, 2 * Math.PI); pen.stroke(); }
  for (let node = 0; node < data.nodes; node++) {
    const [x, y] = data.star && node === 0 ? [size.w / 2, size.h / 2] : spot(angle(node), radius, size);
    pen.beginPath(); pen.arc(x, y, states[node] === "leader" ? dot * 1.25 : dot, 0, 2 * Math.PI);
    pen.fillStyle = paints[states[node]]; pen.fill();
    pen.lineWidth = states[node] === "leader" ? 3 : 1; pen.strokeStyle = states[node] === "leader" ? "#111" : "#66727f"; pen.stroke();
    if (dot > 8 && data.ids.length) {
      pen.fillStyle = "#111"; pen.font = `${Math.round(Math.min(13, dot))}px system-ui, sans-serif`;
      pen.textAlign = "center"; pen.textBaseline = "middle"; pen.fillText(data.ids[node], x, y);
    }
  }
  for (const m of flying) drawMessage(m, size, radius, dot, flying.length);
  tell(flying, states);
}

// Clockwise messages move outside the ring, the others inside.
function drawMessage(m, size, radius, dot, many) {
  const part = m[RECEIVED] > m[SENT] ? (time - m[SENT]) / (m[RECEIVED] - m[SENT]) : 1;
  let x, y;
  if (data.star) {
    const leaf = spot(angle(m[FROM] || m[TO]), radius, size), out = m[FROM] === 0 ? part : 1 - part;
    [x, y] = [size.w / 2 + (leaf[0] - size.w / 2) * out, size.h / 2 + (leaf[1] - size.h / 2) * out];
  } else {
    const way = (m[CLOCKWISE] ? 1 : -1) * 2 * Math.PI / data.nodes;
    const off = dot + 7;
    [x, y] = spot(angle(m[FROM]) + way * part, radius + (m[CLOCKWISE] ? off : -off), size);
  }
  pen.beginPath(); pen.arc(x, y, Math.max(2, Math.min(5, dot * 0.6)), 0, 2 * Math.PI);
  pen.fillStyle = tints[m[KIND] % 4]; pen.fill();
  if (many <= 40 && dot > 6) {
    pen.font = "11px system-ui, sans-serif"; pen.textAlign = "center"; pen.textBaseline = "middle";
    const dx = x - size.w / 2, dy = y - size.h / 2, far = Math.hypot(dx, dy) || 1, away = m[CLOCKWISE] || data.star ? 26 : -30;
    pen.fillText(m[TEXT], x + dx / far * away, y + dy / far * away);
  }
}

function tell(flying, states) {
  const sent = firstFrom(time + 1e-9);
  clock.textContent = `time ${(time / data.unit).toFixed(Number.isInteger(time / data.unit) ? 0 : 2)} of ${data.end / data.unit}`;
  const leads = states.indexOf("leader");
  document.getElementById("counts").textContent =
    `${sent.toLocaleString("en")} messages sent; ${flying.length} under way; ` +
    (leads < 0 ? "nobody leads" : `n${leads}${data.ids.length ? " (id " + data.ids[leads] + ")" : ""} leads`);
  now.replaceChildren(...flying.slice(0, 200).map((m) => {
    const line = document.createElement("div");
    line.textContent = `n${m[FROM]} → n${m[TO]}  ${m[TEXT]}`;
    line.style.color = tints[m[KIND] % 4];
    return line;
  }));
}

function go(to) {
  time = Math.max(0, Math.min(data.end, to));
  scrub.value = data.end ? time / data.end * 1000 : 0;
  draw();
}

function play(on) {
  playing = on; last = null;
  document.getElementById("play").textContent = on ? "Pause" : "Play";
  if (on && time >= data.end) time = 0;
  if (on) requestAnimationFrame(frame);
}

function frame(stamp) {
  if (!playing) return;
  if (last !== null) {
    const rate = data.unit * Math.pow(2, Number(document.getElementById("speed").value));
    go(time + (stamp - last) / 1000 * rate);
    if (time >= data.end) return play(false);
  }
  last = stamp;
  requestAnimationFrame(frame);
}

function step(forward) {
  play(false);
  const next = forward ? instants.find((at) => at > time + 1e-9) : instants.findLast((at) => at < time - 1e-9);
  go(next ?? (forward ? data.end : 0));
}

document.getElementById("play").onclick = () => play(!playing);
document.getElementById("step").onclick = () => step(true);
document.getElementById("back").onclick = () => step(false);
scrub.oninput = () => { play(false); go(Number(scrub.value) / 1000 * data.end); };
window.onresize = draw;
window.onkeydown = (key) => {
  if (key.target.tagName === "INPUT") return;
  if (key.key === " ") { key.preventDefault(); play(!playing); }
  if (key.key === "ArrowRight") step(true);
  if (key.key === "ArrowLeft") step(false);
};
draw();
