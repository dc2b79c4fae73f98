"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const complain = (what) => {
    byId("error").hidden = false;
    byId("error").textContent += what + "\n";
  };
  window.addEventListener("error", (event) => complain(`${event.message} (line ${event.lineno})`));

  const data = JSON.parse(byId("picture").textContent);
  const { lanes, kinds, arrows, runs, bars, reigns, marks, zones, minutes } = data;
  const start = data.start;
  const end = Math.max(data.end, start);
  const beyond = Math.max(data.beyond, start + 1); // the drawing ends a little after the run
  const known = (lane) => lane !== null && lane < lanes.length;
  const whole = (mark) => mark.kind === "violation" || mark.lane === null;

  // ---- what is seen and chosen

  let stepped = data.steps.length > 0; // whether each instant has one step rather than its true place
  const view = { a: 0, b: 1 }; // shares of the whole
  const now = { a: start, b: beyond }; // the same as times
  const only = new Set(); // lanes; empty means all
  const off = new Set(kinds.map((_, index) => index).filter((index) => kinds[index].routine)); // kinds that are not shown
  let needle = "";
  let chosen = -1; // index into minutes
  let hot = new Set(); // arrows of the chosen minute
  let hover = null; // { arrow | bar | mark | zone }
  let shown = minutes.map((_, index) => index);

  // ---- text

  const trim = (text) => (text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text);
  const timeText = (ns) => (ns < 1e9 ? `${trim((ns / 1e6).toFixed(6))} ms` : `${trim((ns / 1e9).toFixed(9))} s`);
  /** The text without the name of its lane: the lane says it already. */
  const nameless = (text, lane) => (known(lane) && text.startsWith(`${lanes[lane].name} `) ? text.slice(lanes[lane].name.length + 1) : text);
  const nameOf = (lane) => (known(lane) ? lanes[lane].name : `lane ${lane}`);

  function tickStep(span, most) {
    const least = span / Math.max(1, most);
    for (let step = 1; ; step *= 10) {
      for (const factor of [1, 2, 5]) if (step * factor > least) return step * factor;
    }
  }

  function tickText(ns, step) {
    const [unit, word] = end < 2e9 ? [1e6, "ms"] : [1e9, "s"];
    const places = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
    return `${(ns / unit).toFixed(Math.min(places, 9))} ${word}`;
  }

  function element(tag, text, parent) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  function chip(colour, parent) {
    const made = element("i", "", parent);
    made.className = "chip";
    made.style.background = colour;
    return made;
  }

  // ---- order, once

  const order = arrows.map((_, index) => index).filter((i) => known(arrows[i].from) && known(arrows[i].to));
  order.sort((i, j) => arrows[i].sent - arrows[j].sent || i - j);
  const endOf = (arrow) => Math.min(arrow.arrived === null ? arrow.sent + data.delay / 2 : arrow.arrived, 2 * beyond - start);
  let longest = 0;
  for (const i of order) longest = Math.max(longest, endOf(arrows[i]) - arrows[i].sent);
  const heard = arrows.map((arrow) => `${kinds[arrow.kind].name} ${arrow.text}`.toLowerCase());
  const told = minutes.map((minute) => [minute.text, ...minute.outcomes].join(" ").toLowerCase());
  const breaks = marks.filter(whole).sort((a, b) => a.at - b.at);

  for (const zone of zones) if (zone.until >= end) zone.until = beyond;
  const zoneRow = new Map();
  let zoneRows = 0;
  const partitions = zones.filter((zone) => !zone.calm);

  // ---- geometry

  const ROW = 18, LEASE = 18, GRANT = 10;
  const canvas = byId("diagram");
  const stage = byId("stage");
  const overview = byId("overview");
  let pen = canvas.getContext("2d");
  const font = (size, weight = 400) => `${weight} ${size}px system-ui, "Segoe UI", "DejaVu Sans", sans-serif`;
  const grantRows = Math.min(3, runs.reduce((most, run) => Math.max(most, run.row + 1), 1));
  const at = { left: 0, plot: 0, wide: 0, high: 0, strip: LEASE + 4 + (GRANT + 2) * grantRows };
  let paint = {};
  let patterns = {};

  function measure() {
    pen.font = font(13, 600);
    const names = lanes.map((lane) => pen.measureText(lane.name).width);
    pen.font = font(10);
    const roles = lanes.map((lane) => pen.measureText(lane.role).width + 6);
    at.left = Math.min(180, Math.max(44, ...names, ...roles)) + 34;
    at.wide = Math.max(320, stage.clientWidth);
    at.plot = at.wide - at.left - 14;
    at.zones = 6;
    placeZones();
    at.breaks = at.zones + ROW * zoneRows;
    at.reign = at.breaks + (breaks.length ? ROW * Math.min(4, breaks.length) : 0) + 6;
    at.lanes = at.reign + 14 + 22;
    const room = (stage.clientHeight - at.lanes - at.strip - 52) / Math.max(1, lanes.length - 1);
    at.pitch = Math.max(at.strip + 32, Math.min(190, room));
    at.axis = at.lanes + at.pitch * Math.max(0, lanes.length - 1) + at.strip + 10;
    at.high = at.axis + (stepped ? 37 : 24);
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${at.high}px`;
    canvas.width = Math.round(at.wide * ratio);
    canvas.height = Math.round(at.high * ratio);
    overview.width = Math.round(overview.clientWidth * ratio);
    overview.height = Math.round(30 * ratio);
  }

  /** Zones whose tabs or labels would touch when the whole run is shown get rows of their own, at every zoom. */
  function placeZones() {
    const ends = [];
    pen.font = font(12);
    for (const zone of [...zones].sort((a, b) => a.from - b.from)) {
      const from = share(zone.from) * at.plot;
      let row = ends.findIndex((taken) => taken <= from);
      if (row < 0) row = Math.min(ends.length, 5);
      const long = Math.min(pen.measureText(zone.text).width + 14, at.plot - from);
      ends[row] = Math.max(share(zone.until) * at.plot, from + long, ends[row] || 0);
      zoneRow.set(zone, row);
    }
    zoneRows = ends.length;
  }

  function readTheme() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    for (const name of ["paper", "panel", "ink", "faint", "line", "grid", "strip", "hatch", "red", "accent"]) {
      paint[name] = read(name);
    }
    paint.calm = read("calm");
    const night = matchMedia("(prefers-color-scheme: dark)").matches;
    paint.kinds = kinds.map((kind) => (night ? lighter(kind.colour) : kind.colour));
    paint.partitions = [read("partition"), read("partition2"), read("partition3")];
    patterns = {
      down: pattern(7, (p) => { p.globalAlpha = 0.35; p.fillStyle = paint.faint; p.fillRect(0, 0, 7, 7); p.globalAlpha = 1; lines(p, 1.7, [-1, 1, 1, -1, 0, 7, 7, 0, 6, 8, 8, 6]); }),
      paused: pattern(6, (p) => { p.fillStyle = paint.ink; p.beginPath(); p.arc(3, 3, 1, 0, 7); p.fill(); }),
      suspended: pattern(8, (p) => lines(p, 1, [4, 0, 4, 8, 0, 4, 8, 4])),
      silent: pattern(9, (p) => lines(p, 0.8, [-1, -1, 10, 10, -1, 8, 1, 10, 8, -1, 10, 1])),
    };
  }

  const lighter = (colour) => "#" + [1, 3, 5].map((i) => Math.round(parseInt(colour.slice(i, i + 2), 16) * 0.6 + 102).toString(16)).join("");

  function lines(p, wide, points) {
    p.strokeStyle = paint.hatch;
    p.lineWidth = wide;
    p.beginPath();
    for (let i = 0; i < points.length; i += 4) {
      p.moveTo(points[i], points[i + 1]);
      p.lineTo(points[i + 2], points[i + 3]);
    }
    p.stroke();
  }

  function pattern(size, fill) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = size * 3;
    const p = tile.getContext("2d");
    p.scale(3, 3);
    fill(p);
    const made = pen.createPattern(tile, "repeat");
    made.setTransform(new DOMMatrix().scale(1 / 3));
    return made;
  }

  // From time to its share of the whole, and back.
  const steps = data.steps;
  function share(time) {
    if (!stepped) return (time - start) / (beyond - start);
    const next = Math.min(steps.length - 1, Math.max(1, steps.findIndex((step) => step > time)));
    const last = time >= steps[steps.length - 1] ? steps.length - 1 : next;
    return (last - 1 + (time - steps[last - 1]) / (steps[last] - steps[last - 1])) / (steps.length - 1);
  }
  function timeOf(place) {
    if (!stepped) return start + place * (beyond - start);
    const step = Math.max(0, Math.min(steps.length - 2, Math.floor(place * (steps.length - 1))));
    return steps[step] + (place * (steps.length - 1) - step) * (steps[step + 1] - steps[step]);
  }

  const x = (time) => at.left + ((share(time) - view.a) / (view.b - view.a)) * at.plot;
  const shareAt = (px) => view.a + ((px - at.left) / at.plot) * (view.b - view.a);
  const timeAt = (px) => timeOf(shareAt(px));
  const top = (lane) => at.lanes + at.pitch * lane;
  const seen = (from, until) => until >= now.a && from <= now.b;

  function shaft(arrow) {
    const down = arrow.to > arrow.from;
    const x1 = x(arrow.sent);
    const y1 = top(arrow.from) + (down ? at.strip : 0);
    let y2 = arrow.to === arrow.from ? y1 : top(arrow.to) + (down ? 0 : at.strip);
    let x2 = x(endOf(arrow));
    if (arrow.arrived === null) {
      x2 = stepped ? x1 + 22 : Math.max(x2, x1 + 5);
      y2 = arrow.to === arrow.from ? y1 - 12 : between(y1, y2);
    }
    return { x1, y1, x2, y2, loop: arrow.to === arrow.from && arrow.arrived !== null };
  }

  /** Midway, but beside a strip rather than on it. */
  function between(y1, y2) {
    const middle = (y1 + y2) / 2;
    for (let lane = 0; lane < lanes.length; lane++) {
      if (middle > top(lane) - 6 && middle < top(lane) + at.strip + 6) {
        return y1 < y2 ? top(lane) - 8 : top(lane) + at.strip + 8;
      }
    }
    return middle;
  }

  function fits(text, room) {
    if (pen.measureText(text).width <= room) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (pen.measureText(text.slice(0, middle) + "…").width <= room) low = middle; else high = middle - 1;
    }
    return low > 1 ? text.slice(0, low) + "…" : "";
  }

  // ---- drawing

  let pending = false;
  function redraw() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; render(); });
  }

  function render() {
    const ratio = canvas.width / at.wide;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = paint.paper;
    pen.fillRect(0, 0, at.wide, at.high);
    pen.save();
    pen.beginPath();
    pen.rect(at.left, 0, at.plot, at.axis + 1);
    pen.clip();
    drawZones();
    drawGrid();
    for (let lane = 0; lane < lanes.length; lane++) {
      pen.fillStyle = paint.strip;
      pen.fillRect(at.left, top(lane), at.plot, at.strip);
    }
    drawArrows();
    drawRuns();
    drawReigns();
    drawAfter();
    drawMarks();
    drawCursor();
    drawBreaks();
    drawHot();
    pen.restore();
    drawLabels();
    drawOverview();
    const until = Math.min(now.b, end), fine = tickStep(until - now.a, 100);
    byId("window").value = `${tickText(now.a, fine)} to ${tickText(until, fine)}`;
  }

  function tint(zone, alpha) {
    const rgb = zone.calm ? paint.calm : paint.partitions[partitions.indexOf(zone) % 3];
    return `rgba(${rgb}, ${alpha})`;
  }

  function drawZones() {
    const rows = [];
    for (const zone of zones) {
      if (!seen(zone.from, zone.until)) continue;
      const y = at.zones + ROW * zoneRow.get(zone);
      const from = x(zone.from), wide = Math.max(1, x(zone.until) - from);
      pen.fillStyle = tint(zone, Math.max(0.05, Math.min(0.14, 0.4 / zoneRows)));
      pen.fillRect(from, y, wide, at.axis - y);
      pen.fillStyle = tint(zone, 0.6);
      pen.fillRect(from, y, wide, ROW - 3);
      pen.fillRect(from, y, 1, at.axis - y);
      pen.fillRect(from + wide - 1, y, 1, at.axis - y);
      (rows[zoneRow.get(zone)] ||= []).push({ zone, from, y });
    }
    pen.font = font(12);
    pen.fillStyle = paint.ink;
    for (const row of rows) {
      (row || []).sort((a, b) => a.from - b.from).forEach(({ zone, from, y }, i, all) => {
        const left = Math.max(from, at.left) + 5;
        const room = (i + 1 < all.length ? all[i + 1].from : at.left + at.plot) - left - 6;
        const text = room > 14 ? fits(zone.text, room) : "";
        const edge = Math.max(x(zone.until), left), over = left + pen.measureText(text).width + 5 - edge;
        if (text && over > 0) {
          pen.fillStyle = tint(zone, 0.3);
          pen.fillRect(edge, y, over, ROW - 3);
          pen.fillStyle = paint.ink;
        }
        pen.fillText(text, left, y + 11.5);
      });
    }
  }

  function ticks(visit) {
    if (stepped) return steps.forEach((time) => time <= end && seen(time, time) && visit(time, 1e3));
    const step = tickStep(now.b - now.a, at.plot / 95);
    const first = Math.ceil(now.a / step);
    for (let i = 0; i < 100 && (first + i) * step <= Math.min(now.b, end); i++) visit((first + i) * step, step);
  }

  /** Behind the end of the run: what still lasts runs on, and fades. */
  function drawAfter() {
    const from = x(end), until = x(beyond);
    if (until - from < 0.5 || from > at.left + at.plot) return;
    const fade = pen.createLinearGradient(from, 0, until, 0);
    fade.addColorStop(0, paint.paper + "26");
    fade.addColorStop(1, paint.paper + "bf");
    pen.fillStyle = fade;
    pen.fillRect(from, at.reign - 2, until - from, at.axis - at.reign);
    pen.fillStyle = paint.faint;
    pen.fillRect(from - 0.5, at.reign - 2, 1, at.axis - at.reign + 2);
  }

  function drawGrid() {
    pen.fillStyle = paint.grid;
    ticks((time) => pen.fillRect(Math.round(x(time)), at.reign - 2, 1, at.axis));
  }

  function matches(i) {
    const arrow = arrows[i];
    if (only.size && !only.has(arrow.from) && !only.has(arrow.to)) return false;
    return !needle || heard[i].includes(needle);
  }

  /** The arrows of which something is visible, by binary search on when they were sent. */
  function visible() {
    let low = 0, high = order.length;
    const from = now.a - longest;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (arrows[order[middle]].sent < from) low = middle + 1; else high = middle;
    }
    const found = [];
    for (; low < order.length && arrows[order[low]].sent <= now.b; low++) {
      const i = order[low];
      if (!off.has(arrows[i].kind) && endOf(arrows[i]) >= now.a) found.push(i);
    }
    return found;
  }

  function drawArrows() {
    const all = visible();
    const on = [], faint = [];
    for (const i of all) (matches(i) ? on : faint).push(i);
    const density = on.length / at.plot;
    const dim = hot.size && cursorSeen() ? 0.45 : 1;
    const look = {
      alpha: Math.min(0.9, Math.max(0.2, 0.95 - density * 0.6)) * dim,
      wide: Math.min(1.4, Math.max(0.6, 1.5 - density)),
      heads: density < 0.8,
      small: density > 0.4,
    };
    drawSet(faint, { alpha: 0.07, wide: 0.8, heads: false });
    drawSet(on, look);
    drawSet([...hot].filter((i) => !off.has(arrows[i].kind)), { alpha: 1, wide: 2.4, heads: true });
    if (hover && hover.arrow !== undefined) drawSet([hover.arrow], { alpha: 1, wide: 3, heads: true });
  }

  function drawSet(set, look) {
    pen.globalAlpha = look.alpha;
    for (let kind = 0; kind < kinds.length; kind++) {
      for (const lost of [false, true]) {
        const some = set.filter((i) => arrows[i].kind === kind && (arrows[i].arrived === null) === lost);
        if (some.length) drawKind(some.map((i) => shaft(arrows[i])), paint.kinds[kind], lost, look);
      }
    }
    pen.globalAlpha = 1;
  }

  function drawKind(shafts, colour, lost, look) {
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = look.wide;
    pen.setLineDash(lost ? [4, 3] : []);
    pen.beginPath();
    for (const s of shafts) {
      pen.moveTo(s.x1, s.y1);
      if (s.loop) pen.quadraticCurveTo((s.x1 + s.x2) / 2, s.y1 - 24, s.x2, s.y2);
      else pen.lineTo(s.x2, s.y2);
    }
    pen.stroke();
    pen.setLineDash([]);
    pen.beginPath();
    for (const s of shafts) {
      if (lost) cross(s.x2, s.y2, look.small ? 2.5 : 3.5);
      else if (look.heads) head(s.loop ? { ...s, x1: (s.x1 + s.x2) / 2, y1: s.y1 - 24 } : s);
    }
    if (!lost) return pen.fill();
    pen.lineWidth = look.small ? 1 : 1.7;
    pen.stroke();
  }

  function cross(cx, cy, arm) {
    pen.moveTo(cx - arm, cy - arm);
    pen.lineTo(cx + arm, cy + arm);
    pen.moveTo(cx - arm, cy + arm);
    pen.lineTo(cx + arm, cy - arm);
  }

  function head(s) {
    const long = Math.max(0.1, Math.hypot(s.x2 - s.x1, s.y2 - s.y1));
    const dx = (s.x2 - s.x1) / long, dy = (s.y2 - s.y1) / long;
    const bx = s.x2 - dx * 7.5, by = s.y2 - dy * 7.5;
    pen.moveTo(s.x2, s.y2);
    pen.lineTo(bx - dy * 3, by + dx * 3);
    pen.lineTo(bx + dy * 3, by - dx * 3);
    pen.closePath();
  }

  const rank = { silent: 0, grant: 1, lease: 2, paused: 3, suspended: 3, down: 4 };
  const layered = runs.map((run, index) => ({ run, index })).sort((a, b) => rank[a.run.kind] - rank[b.run.kind] || a.index - b.index);

  function box(run) {
    const from = x(run.from), wide = Math.max(1, x(run.until) - from);
    if (run.kind === "lease") return { from, y: top(run.lane) + 2, wide, high: LEASE };
    if (run.kind === "grant") {
      return { from, y: top(run.lane) + LEASE + 5 + (GRANT + 2) * Math.min(2, run.row), wide, high: GRANT };
    }
    return { from, y: top(run.lane), wide, high: at.strip };
  }

  const colourOf = (lane) => (known(lane) ? lanes[lane].fill : paint.faint);
  const dimmed = (lane) => only.size > 0 && !only.has(lane);

  function drawRuns() {
    for (const { run, index } of layered) {
      if (!seen(run.from, run.until)) continue;
      const { from, y, wide, high } = box(run);
      pen.globalAlpha = dimmed(run.lane) ? 0.3 : 1;
      if (run.kind === "lease" || run.kind === "grant") {
        pen.fillStyle = colourOf(run.kind === "lease" ? run.lane : run.to);
        pen.fillRect(from, y, wide, high);
        if (run.kind === "lease") {
          pen.fillStyle = paint.paper;
          pen.fillRect(from - 0.5, y, 1, high);
          leaseLabel(run, index, y);
        } else {
          grantLabel(run, y);
        }
      } else {
        outage(run.kind, from, y, wide, high);
      }
    }
    pen.globalAlpha = 1;
  }

  function leaseLabel(run, index, y) {
    const later = runs.slice(index + 1, index + 40).find((other) => other.lane === run.lane && other.kind === "lease");
    const until = later ? Math.min(later.from, run.until) : run.until;
    const left = Math.max(x(run.from), at.left) + 14;
    const room = Math.min(x(until), at.left + at.plot) - 4 - left;
    pen.font = font(12, 600);
    pen.fillStyle = lanes[run.lane].ink;
    const plain = nameless(run.text, run.lane);
    const texts = [run.text, plain, plain.split(", ").pop()];
    pen.fillText(texts.find((text) => pen.measureText(text).width <= room) || "", left, y + 13.2);
  }

  function grantLabel(run, y) {
    if (!known(run.to)) return;
    const left = Math.max(x(run.from), at.left) + 4;
    pen.font = font(9, 600);
    if (pen.measureText(lanes[run.to].name).width > Math.min(x(run.until), at.left + at.plot) - left - 4) return;
    pen.fillStyle = lanes[run.to].ink;
    pen.fillText(lanes[run.to].name, left, y + GRANT - 1.8);
  }

  function outage(kind, from, y, wide, high, bare) {
    pen.fillStyle = patterns[kind];
    pen.fillRect(from, y, wide, high);
    pen.strokeStyle = paint.hatch;
    pen.lineWidth = 1;
    pen.setLineDash({ paused: [1.5, 2.5], silent: [5, 3] }[kind] || []);
    pen.strokeRect(from + 0.5, y + 0.5, Math.max(0, wide - 1), high - 1);
    pen.setLineDash([]);
    pen.font = font(11);
    const left = Math.max(from, at.left), right = Math.min(from + wide, at.left + at.plot);
    const long = pen.measureText(kind).width + 10;
    if (bare || right - left < long + 20) return;
    pen.fillStyle = paint.paper;
    pen.fillRect((left + right - long) / 2, y + 3.5, long, 15);
    pen.fillStyle = paint.ink;
    pen.fillText(kind, (left + right - long) / 2 + 5, y + 15);
  }

  function drawReigns() {
    pen.font = font(11, 600);
    for (const reign of reigns) {
      if (!seen(reign.from, reign.until)) continue;
      const from = Math.max(at.left, x(reign.from)), until = Math.min(at.left + at.plot, x(reign.until));
      const high = 14 / reign.lanes.length;
      reign.lanes.forEach((lane, place) => {
        pen.fillStyle = colourOf(lane);
        pen.fillRect(from, at.reign + place * high, Math.max(1, until - from), high);
      });
      const name = lanes[reign.lanes[0]].name, long = pen.measureText(name).width;
      if (reign.lanes.length === 1 && until - from > long + 8) {
        pen.fillStyle = lanes[reign.lanes[0]].ink;
        pen.fillText(name, (from + until - long) / 2, at.reign + 11);
      }
    }
    pen.strokeStyle = paint.line;
    pen.strokeRect(at.left, at.reign, at.plot, 14);
  }

  function star(cx, cy) {
    for (let i = 0; i < 10; i++) {
      const r = i % 2 ? 3.9 : 9, angle = (i * Math.PI) / 5 - Math.PI / 2;
      pen.lineTo(cx + r * Math.cos(angle), cy + r * Math.sin(angle));
    }
    pen.closePath();
  }

  function symbol(kind, cx, cy, colour) {
    pen.lineJoin = "round";
    pen.beginPath();
    if (kind === "crash") {
      cross(cx, cy, 6);
      for (const [wide, ink] of [[6, paint.paper], [3, paint.ink]]) {
        pen.lineWidth = wide;
        pen.strokeStyle = ink;
        pen.stroke();
      }
      return;
    }
    if (kind === "start") {
      pen.moveTo(cx, cy - 6.5);
      pen.lineTo(cx + 11, cy);
      pen.lineTo(cx, cy + 6.5);
      pen.closePath();
    } else if (kind === "violation") {
      pen.arc(cx, cy, 9, 0, 7);
    } else {
      star(cx, cy);
    }
    const looks = {
      start: [paint.ink, paint.paper, 1.2],
      elected: [colour, paint.ink, 1.3],
      lost: [paint.paper, colour, 1.8],
      violation: ["transparent", paint.red, 2.5],
    };
    const [fill, line, wide] = looks[kind];
    pen.fillStyle = fill;
    pen.strokeStyle = line;
    pen.lineWidth = wide;
    pen.fill();
    pen.stroke();
  }

  function drawMarks() {
    for (const mark of marks) {
      if (!known(mark.lane) || !seen(mark.at, mark.at)) continue;
      pen.globalAlpha = dimmed(mark.lane) ? 0.3 : 1;
      symbol(mark.kind, x(mark.at), top(mark.lane) + 2 + LEASE / 2, colourOf(mark.lane));
      if (mark.kind === "lost") why(mark);
    }
    pen.globalAlpha = 1;
  }

  /** Why it leads no longer, where there is room for it on the strip. */
  function why(mark) {
    const reason = mark.text.includes(": ") ? mark.text.split(": ").pop() : "";
    const next = Math.min(
      beyond,
      ...marks.filter((other) => other.lane === mark.lane && other.at > mark.at).map((other) => other.at),
      ...runs.filter((run) => run.lane === mark.lane && run.kind !== "grant" && run.until > mark.at).map((run) => run.from),
    );
    const left = x(mark.at) + 12;
    pen.font = font(11);
    if (!reason || pen.measureText(reason).width > x(next) - 8 - left) return;
    pen.strokeStyle = paint.strip;
    pen.lineWidth = 3;
    pen.strokeText(reason, left, top(mark.lane) + 15);
    pen.fillStyle = paint.ink;
    pen.fillText(reason, left, top(mark.lane) + 15);
  }

  /** Violations: the earlier ones get their labels first, the rest stay lines until there is room. */
  function drawBreaks() {
    const right = at.left + at.plot;
    const ends = new Array(Math.min(4, breaks.length)).fill(0);
    const labels = [];
    pen.font = font(12, 600);
    for (const mark of breaks) {
      if (!seen(mark.at, mark.at)) continue;
      const text = fits(mark.text, at.plot - 12), long = pen.measureText(text).width + 10;
      const left = Math.max(at.left, Math.min(x(mark.at), right - long));
      const row = ends.findIndex((taken) => taken <= left);
      const y = at.breaks + ROW * Math.max(0, row);
      pen.fillStyle = mark.kind === "violation" ? paint.red : paint.faint;
      pen.fillRect(x(mark.at) - 1, y, 2, at.axis - y);
      if (row < 0 || !text) continue;
      ends[row] = left + long + 4;
      labels.push({ text, left, y, long, fill: pen.fillStyle });
    }
    for (const { text, left, y, long, fill } of labels) {
      pen.fillStyle = fill;
      pen.fillRect(left, y, long, ROW - 2);
      pen.fillStyle = paint.paper;
      pen.fillText(text, left + 5, y + 12);
    }
  }

  const cursorSeen = () => chosen >= 0 && seen(minutes[chosen].at, minutes[chosen].at);

  function drawCursor() {
    if (!cursorSeen()) return;
    const cx = Math.round(x(minutes[chosen].at));
    pen.fillStyle = paint.accent;
    pen.fillRect(cx - 0.75, at.zones, 1.5, at.axis);
    pen.beginPath();
    pen.moveTo(cx, at.axis - 9);
    pen.lineTo(cx - 5, at.axis);
    pen.lineTo(cx + 5, at.axis);
    pen.fill();
    const lane = minutes[chosen].lane;
    if (known(lane)) {
      pen.strokeStyle = paint.accent;
      pen.lineWidth = 1.5;
      pen.strokeRect(at.left + 1, top(lane) - 1, at.plot - 2, at.strip + 2);
    }
  }

  function drawHot() {
    pen.font = font(11);
    const taken = [];
    if (hot.size > 6) return;
    const said = new Set(); // what one sender tells all is written once
    for (const i of hot) {
      const key = `${arrows[i].from} ${arrows[i].text}`;
      if (off.has(arrows[i].kind) || said.has(key)) continue;
      said.add(key);
      hotLabel(i, taken);
    }
  }

  function hotLabel(i, taken) {
    const s = shaft(arrows[i]);
    const text = fits(arrows[i].text, 260), long = pen.measureText(text).width;
    let y = s.y1 + (s.y2 - s.y1) * (arrows[i].arrived === null ? 1 : 0.6);
    for (let lane = 0; lane < lanes.length; lane++) {
      if (y > top(lane) - 10 && y < top(lane) + at.strip + 10) y = s.y1 < s.y2 ? top(lane) - 10 : top(lane) + at.strip + 10;
    }
    const beside = s.y1 === s.y2 ? s.x2 : s.x1 + ((y - s.y1) / (s.y2 - s.y1)) * (s.x2 - s.x1);
    const right = at.left + at.plot - long - 10;
    const left = Math.max(at.left, beside + 8 > right ? Math.min(right, beside - long - 16) : beside + 8);
    while (taken.some((other) => Math.abs(other.y - y) < 15 && Math.abs(other.left - left) < Math.max(other.long, long) + 10)) y += 15;
    taken.push({ y, left, long });
    pen.globalAlpha = 0.92;
    pen.fillStyle = paint.paper;
    pen.fillRect(left, y - 8, long + 8, 15);
    pen.globalAlpha = 1;
    pen.fillStyle = paint.ink;
    pen.fillText(text, left + 4, y + 3.5);
  }

  function drawLabels() {
    pen.font = font(13, 600);
    lanes.forEach((lane, i) => {
      pen.globalAlpha = dimmed(i) ? 0.4 : 1;
      const middle = top(i) + at.strip / 2;
      pen.fillStyle = lane.fill;
      pen.fillRect(8, middle - 6, 12, 12);
      pen.fillStyle = paint.ink;
      pen.fillText(fits(lane.name, at.left - 32), 26, middle + 4.5);
    });
    pen.globalAlpha = 1;
    pen.fillStyle = paint.faint;
    pen.font = font(10);
    for (let lane = 0; lane < lanes.length; lane++) {
      if (lanes[lane].role) pen.fillText(fits(lanes[lane].role, at.left - 38), 26, top(lane) + at.strip / 2 + 16.5);
      pen.fillText(data.legend.leadTrack, at.left - 11, top(lane) + 15);
      pen.fillText(data.legend.supportTrack, at.left - 11, top(lane) + LEASE + 4 + GRANT);
    }
    pen.font = font(12);
    pen.fillText("leader", 26, at.reign + 11);
    pen.fillRect(at.left, at.axis, Math.max(0, Math.min(at.plot, x(end) - at.left)), 1);
    pen.font = font(11);
    const ends = [0, 0]; // labels that would touch take turns in two rows
    ticks((time, step) => {
      const text = stepped ? `${trim((time / 1e6).toFixed(3))} ms` : tickText(time, step), long = pen.measureText(text).width;
      const left = Math.min(x(time) - long / 2, at.wide - long - 1);
      const row = ends.findIndex((taken) => taken <= left);
      if (row < 0) return;
      ends[row] = left + long + 4;
      pen.fillText(text, left, at.axis + 15 + 13 * row);
    });
  }

  function drawOverview() {
    const p = overview.getContext("2d");
    const ratio = window.devicePixelRatio || 1, wide = overview.width / ratio;
    const plot = wide - at.left - 14;
    const ox = (time) => at.left + share(time) * plot;
    p.setTransform(ratio, 0, 0, ratio, 0, 0);
    p.clearRect(0, 0, wide, 30);
    p.font = font(11);
    p.fillStyle = paint.faint;
    p.fillText("whole run", 8, 19);
    p.fillStyle = paint.strip;
    p.fillRect(at.left, 7, plot, 16);
    for (const zone of zones) {
      p.fillStyle = tint(zone, 0.35);
      p.fillRect(ox(zone.from), 3, Math.max(1, ox(zone.until) - ox(zone.from)), 24);
    }
    for (const reign of reigns) {
      reign.lanes.forEach((lane, place) => {
        p.fillStyle = colourOf(lane);
        const high = 12 / reign.lanes.length;
        p.fillRect(ox(reign.from), 9 + place * high, Math.max(1, ox(reign.until) - ox(reign.from)), high);
      });
    }
    p.fillStyle = paint.red;
    for (const mark of breaks) if (mark.kind === "violation") p.fillRect(ox(mark.at) - 1, 2, 2, 26);
    p.fillStyle = paint.accent;
    if (chosen >= 0) p.fillRect(ox(minutes[chosen].at) - 0.75, 2, 1.5, 26);
    p.strokeStyle = paint.accent;
    p.lineWidth = 2;
    p.strokeRect(at.left + view.a * plot, 2, Math.max(3, (view.b - view.a) * plot), 26);
  }

  // ---- moving

  const least = () => (stepped ? 0.05 : Math.min(1, 2000 / (beyond - start)));

  function show(a, span) {
    span = Math.min(1, Math.max(least(), span));
    view.a = Math.min(1 - span, Math.max(0, a));
    view.b = view.a + span;
    [now.a, now.b] = [timeOf(view.a), timeOf(view.b)];
    redraw();
  }

  function zoom(factor, about) {
    const span = view.b - view.a;
    const next = Math.min(1, Math.max(least(), span * factor));
    show(about - ((about - view.a) / span) * next, next);
  }

  const centre = () => {
    const place = chosen >= 0 ? share(minutes[chosen].at) : -1;
    return place >= view.a && place <= view.b ? place : (view.a + view.b) / 2;
  };
  const pan = (share) => show(view.a + share * (view.b - view.a), view.b - view.a);
  const fit = () => show(0, 1);

  if (stepped) {
    byId("steps").hidden = false;
    byId("steps").onclick = () => {
      stepped = !stepped;
      byId("steps").setAttribute("aria-pressed", String(stepped));
      measure();
      legend();
      fit();
    };
  }
  byId("in").onclick = () => zoom(0.6, centre());
  byId("out").onclick = () => zoom(1 / 0.6, centre());
  byId("fit").onclick = fit;
  byId("earlier").onclick = () => pan(-0.25);
  byId("later").onclick = () => pan(0.25);

  const place = (event) => {
    const frame = canvas.getBoundingClientRect();
    return { px: event.clientX - frame.left, py: event.clientY - frame.top };
  };

  canvas.addEventListener("wheel", (event) => {
    if (event.altKey) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1;
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (sideways) pan(((event.deltaX || event.deltaY) * unit) / at.plot);
    else zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * unit * 0.0022))), shareAt(place(event).px));
  }, { passive: false });

  const fingers = new Map();
  let moved = 0;

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, place(event));
    moved = 0;
  });

  canvas.addEventListener("pointermove", (event) => {
    const spot = place(event);
    const before = fingers.get(event.pointerId);
    if (!before) return point(event, spot);
    const others = [...fingers].filter(([id]) => id !== event.pointerId);
    if (others.length) {
      const other = others[0][1].px;
      const was = Math.max(10, Math.abs(before.px - other)), is = Math.max(10, Math.abs(spot.px - other));
      zoom(was / is, shareAt((spot.px + other) / 2));
    }
    moved += Math.abs(spot.px - before.px);
    if (moved > 3) {
      canvas.classList.add("dragging");
      unpoint();
      if (!others.length) show(view.a - ((spot.px - before.px) / at.plot) * (view.b - view.a), view.b - view.a);
    }
    fingers.set(event.pointerId, spot);
  });

  const release = (event) => {
    if (!fingers.delete(event.pointerId)) return;
    canvas.classList.remove("dragging");
    if (event.type === "pointerup" && moved <= 3) pick(place(event));
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => unpoint());

  const overviewMove = (event) => {
    if (!event.buttons) return;
    const frame = overview.getBoundingClientRect();
    const share = (event.clientX - frame.left - at.left) / (frame.width - at.left - 14);
    show(share - (view.b - view.a) / 2, view.b - view.a);
  };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); overviewMove(event); });
  overview.addEventListener("pointermove", overviewMove);

  // ---- pointing at things

  function distance(px, py, s) {
    const dx = s.x2 - s.x1, dy = s.y2 - s.y1;
    const along = Math.max(0, Math.min(1, ((px - s.x1) * dx + (py - s.y1) * dy) / Math.max(0.01, dx * dx + dy * dy)));
    return Math.hypot(px - s.x1 - along * dx, py - s.y1 - along * dy);
  }

  function hitArrow(px, py) {
    let best = null, near = 6;
    for (const i of visible()) {
      if (!matches(i)) continue;
      const s = shaft(arrows[i]);
      if (s.loop) s.y1 = s.y2 = s.y1 - 10;
      const far = distance(px, py, s);
      if (far < near) [near, best] = [far, i];
    }
    return best;
  }

  function hit({ px, py }) {
    if (px < at.left || px > at.left + at.plot) return null;
    const time = timeAt(px);
    const mark = marks.find((m) => known(m.lane) && Math.abs(x(m.at) - px) < 9 && Math.abs(top(m.lane) + 11 - py) < 10)
      || breaks.find((m) => Math.abs(x(m.at) - px) < 4 && py > at.breaks);
    if (mark) return { mark };
    for (let k = layered.length - 1; k >= 0; k--) {
      const run = layered[k].run, b = box(run);
      if (px >= b.from - 1 && px <= b.from + b.wide + 1 && py >= b.y - 1 && py <= b.y + b.high + 1) {
        const same = bars.filter((bar) => bar.lane === run.lane && bar.kind === run.kind && bar.to === run.to && bar.from <= time && bar.until >= time);
        return { bar: same[same.length - 1] || run, run, time };
      }
    }
    const arrow = hitArrow(px, py);
    if (arrow !== null) return { arrow };
    const reign = py >= at.reign && py <= at.reign + 14 && reigns.find((r) => r.from <= time && time <= r.until);
    if (reign) return { reign, time };
    const zone = py < at.breaks && zones.find((z) => z.from <= time && z.until >= time && Math.abs(at.zones + ROW * zoneRow.get(z) + 8 - py) < 9);
    return zone ? { zone } : null;
  }

  const lasting = ({ from, until }) => (until > end
    ? [["from", timeText(from)], ["until", "beyond the end of the run"]]
    : [["from", timeText(from)], ["until", timeText(until)], ["lasts", timeText(until - from)]]);

  /** Whose grants a lane has at a time. */
  function supporters(lane, time) {
    const grants = runs.filter((run) => run.kind === "grant" && run.to === lane && run.from <= time && time <= run.until);
    return grants.map((run) => nameOf(run.lane)).join(" ") || "nobody";
  }

  /** What became of a lane whose lease ends: what befell it then, and how it came to know. */
  function ending(lane, time) {
    const why = runs.filter((run) => run.lane === lane && !["lease", "grant"].includes(run.kind) && run.from <= time && time <= run.until).map((run) => run.kind);
    const later = marks.filter((mark) => mark.lane === lane && mark.at >= time).sort((a, b) => a.at - b.at)[0];
    if (later && (later.kind === "lost" || later.kind === "crash")) why.push(nameless(later.text, lane));
    return why.length ? [["ended", why.join("; ")]] : [];
  }

  function describe(found) {
    if (found.arrow !== undefined) {
      const arrow = arrows[found.arrow];
      const rows = [["sent", timeText(arrow.sent)]];
      if (arrow.arrived === null) rows.push(["arrived", "lost, or not handled before the end"]);
      else rows.push(["arrived", timeText(arrow.arrived)], ["delay", timeText(arrow.arrived - arrow.sent)]);
      return [`${kinds[arrow.kind].name}, ${nameOf(arrow.from)} to ${nameOf(arrow.to)}`, arrow.text, rows, paint.kinds[arrow.kind]];
    }
    if (found.bar) {
      const { bar, run } = found;
      const head = bar.kind === "grant" ? `grant, ${nameOf(bar.lane)} to ${nameOf(bar.to)}` : `${bar.kind}, ${nameOf(bar.lane)}`;
      const rows = lasting(run.open && bar.until >= end ? { from: bar.from, until: beyond } : bar);
      if (run.from < bar.from || run.until > bar.until) rows.push(["with renewals", `${timeText(run.from)} to ${run.open ? "beyond the end" : timeText(run.until)}`]);
      if (bar.kind === "lease") rows.push(["supported by", supporters(bar.lane, found.time)], ...ending(bar.lane, run.until));
      return [head, bar.text, rows, colourOf(bar.kind === "grant" ? bar.to : bar.lane)];
    }
    if (found.mark) {
      const { mark } = found;
      return [known(mark.lane) ? `${mark.kind}, ${nameOf(mark.lane)}` : mark.kind, mark.text, [["at", timeText(mark.at)]], mark.kind === "violation" ? paint.red : colourOf(mark.lane)];
    }
    const span = found.reign || found.zone;
    const rows = lasting(span);
    if (found.zone) return [span.calm ? "calm" : "partition", span.text, rows, tint(span, 1)];
    for (const lane of span.lanes) rows.push(["supported by", supporters(lane, found.time)], ...ending(lane, span.until));
    return ["leader", span.lanes.map(nameOf).join(" and "), rows, colourOf(span.lanes[0])];
  }

  function point(event, spot) {
    const found = hit(spot);
    const changed = (found && found.arrow) !== (hover && hover.arrow);
    hover = found;
    if (changed) redraw();
    const tip = byId("tip");
    tip.hidden = !found;
    if (!found) return;
    const [head, text, rows, colour] = describe(found);
    tip.replaceChildren();
    const first = element("p", undefined, tip);
    chip(colour, first);
    element("strong", head, first);
    if (text) element("p", text, tip);
    const table = element("dl", undefined, tip);
    for (const [name, value] of rows) {
      element("dt", name, table);
      element("dd", value, table);
    }
    const wide = tip.offsetWidth, high = tip.offsetHeight;
    tip.style.left = `${Math.max(4, event.clientX + 16 + wide > innerWidth ? event.clientX - wide - 12 : event.clientX + 16)}px`;
    tip.style.top = `${Math.max(4, event.clientY + 16 + high > innerHeight ? event.clientY - high - 12 : event.clientY + 16)}px`;
  }

  function unpoint() {
    byId("tip").hidden = true;
    if (hover) redraw();
    hover = null;
  }

  /** A click goes to the nearest minute, on the lane that was clicked if there is one as near. */
  function pick(spot) {
    const found = hit(spot);
    let time = timeAt(spot.px), lane = null;
    if (found && found.arrow !== undefined) [time, lane] = [arrows[found.arrow].sent, arrows[found.arrow].from];
    if (found && found.mark) [time, lane] = [found.mark.at, found.mark.lane];
    let best = -1, near = Infinity;
    for (const index of shown) {
      const away = Math.abs(minutes[index].at - time) + (lane !== null && minutes[index].lane !== lane ? 1 : 0);
      if (away < near) [near, best] = [away, index];
    }
    if (best >= 0) choose(best, false);
  }

  // ---- minutes

  const list = byId("minutes");
  const items = minutes.map((minute, index) => {
    const item = document.createElement("li");
    item.id = `m${index}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    element("time", timeText(minute.at), item);
    const text = element("span", undefined, item);
    if (known(minute.lane)) {
      chip(lanes[minute.lane].fill, text);
      element("b", lanes[minute.lane].name, text);
    }
    text.append(nameless(minute.text, minute.lane));
    for (const outcome of minute.outcomes) element("em", nameless(outcome, minute.lane), item);
    return item;
  });
  list.append(...items);
  list.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) choose(Number(item.id.slice(1)), true);
  });

  /** The arrows that begin or end just then; failing those, the ones close by. */
  function arrowsAt(minute) {
    const touches = (i, slack) => {
      const arrow = arrows[i];
      const sent = Math.abs(arrow.sent - minute.at) <= slack && (minute.lane === null || arrow.from === minute.lane || slack > 0);
      const came = arrow.arrived !== null && Math.abs(arrow.arrived - minute.at) <= slack && (minute.lane === null || arrow.to === minute.lane || slack > 0);
      return sent || came;
    };
    const exact = order.filter((i) => touches(i, 0));
    const slack = ((now.b - now.a) / at.plot) * 6;
    return new Set(exact.length ? exact : order.filter((i) => touches(i, slack)));
  }

  /** Scrolls the list alone, never the page. */
  function reveal(item) {
    const page = document.scrollingElement, height = page.scrollTop;
    item.scrollIntoView({ block: "nearest" });
    page.scrollTop = height;
  }

  function choose(index, move) {
    if (chosen >= 0) items[chosen].setAttribute("aria-selected", "false");
    chosen = index;
    hot = index < 0 ? new Set() : arrowsAt(minutes[index]);
    if (index >= 0) {
      items[index].setAttribute("aria-selected", "true");
      reveal(items[index]);
      list.setAttribute("aria-activedescendant", items[index].id);
      const span = view.b - view.a, place = share(minutes[index].at);
      const outside = place < view.a + span * 0.08 || place > view.b - span * 0.08;
      if (move && outside) show(place - span / 2, span);
    } else {
      list.removeAttribute("aria-activedescendant");
    }
    const minute = minutes[index];
    canvas.setAttribute("aria-label", minute ? `Space-time diagram, cursor at ${timeText(minute.at)}: ${known(minute.lane) ? nameOf(minute.lane) + " " : ""}${nameless(minute.text, minute.lane)}` : "Space-time diagram");
    count();
    redraw();
  }

  function step(by) {
    if (!shown.length) return;
    let place = shown.indexOf(chosen);
    if (place < 0) place = by > 0 ? -1 : shown.length;
    if (chosen >= 0 && !shown.includes(chosen)) {
      const next = shown.findIndex((index) => index > chosen);
      place = next < 0 ? shown.length : by > 0 ? next - 1 : next;
    }
    choose(shown[Math.max(0, Math.min(shown.length - 1, place + by))], true);
  }
  byId("previous").onclick = () => step(-1);
  byId("next").onclick = () => step(1);

  function count() {
    const place = shown.indexOf(chosen);
    const all = shown.length === minutes.length ? "" : ` (${minutes.length} in all)`;
    byId("place").value = `${place < 0 ? "–" : place + 1} of ${shown.length}${all}`;
  }

  // ---- filters

  function filter() {
    shown = [];
    minutes.forEach((minute, index) => {
      const node = !only.size || minute.lane === null || only.has(minute.lane);
      const fine = node && (!needle || told[index].includes(needle));
      items[index].hidden = !fine;
      if (fine) shown.push(index);
    });
    const on = needle ? order.filter(matches).length : 0;
    byId("found").value = needle ? `${on} messages, ${shown.length} minutes` : "";
    if (chosen >= 0 && !items[chosen].hidden) reveal(items[chosen]);
    count();
    redraw();
  }

  function toggle(button, set, value, pressedWhen) {
    button.type = "button";
    button.setAttribute("aria-pressed", String(set.has(value) === pressedWhen));
    button.onclick = () => {
      if (!set.delete(value)) set.add(value);
      button.setAttribute("aria-pressed", String(set.has(value) === pressedWhen));
      filter();
    };
  }

  lanes.forEach((lane, index) => {
    const button = element("button", undefined, byId("nodes"));
    chip(lane.fill, button);
    button.append(lane.name);
    toggle(button, only, index, true);
  });
  byId("find").addEventListener("input", () => {
    needle = byId("find").value.trim().toLowerCase();
    filter();
  });

  // ---- legend

  /** A symbol, drawn by the same strokes as in the diagram. */
  function entry(text, draw, tag = "span") {
    const holder = element(tag, undefined, byId("legend"));
    const small = element("canvas", undefined, holder);
    small.width = 34 * 3;
    small.height = 18 * 3;
    small.setAttribute("aria-hidden", "true");
    const kept = pen;
    pen = small.getContext("2d");
    pen.scale(3, 3);
    draw();
    pen = kept;
    holder.append(text);
    return holder;
  }

  function legend() {
    byId("legend").replaceChildren();
    const mine = lanes.length ? lanes[0].fill : paint.faint;
    const block = (colour, y, high) => () => { pen.fillStyle = colour; pen.fillRect(0, y, 34, high); };
    const has = (kind) => runs.some((run) => run.kind === kind);
    const says = data.legend;
    if (has("lease")) entry(says.leads, block(mine, 0, 18));
    const halves = () => {
      pen.fillStyle = mine;
      pen.fillRect(0, 4, 16, GRANT);
      pen.fillStyle = lanes.length > 1 ? lanes[1].fill : paint.faint;
      pen.fillRect(18, 4, 16, GRANT);
    };
    if (has("grant")) entry(says.supports, halves);
    const outages = { down: "down", paused: "paused, clock runs on", suspended: "machine suspended", silent: says.silent };
    for (const kind in outages) if (has(kind)) entry(outages[kind], () => outage(kind, 0, 0, 34, 18, true));
    const signs = { elected: says.elected, lost: "leads no longer", crash: "crash", start: "start" };
    for (const kind in signs) {
      if (marks.some((mark) => mark.kind === kind)) entry(signs[kind], () => symbol(kind, 17, 9, mine));
    }
    if (marks.some((mark) => mark.kind === "violation")) {
      entry("a property is broken", () => { pen.fillStyle = paint.red; pen.fillRect(16, 0, 2, 18); });
    }
    kinds.forEach((kind, index) => {
      const line = () => drawKind([{ x1: 0, y1: 9, x2: 33, y2: 9 }], paint.kinds[index], false, { wide: 1.6, heads: true });
      const button = entry(kind.name, line, "button");
      button.title = "Show or hide these messages";
      toggle(button, off, index, false);
    });
    if (arrows.some((arrow) => arrow.arrived === null)) {
      entry(says.missing, () => drawKind([{ x1: 0, y1: 9, x2: 27, y2: 9 }], paint.faint, true, { wide: 1.2 }));
    }
    if (partitions.length) entry(data.legend.zones, block(tint(partitions[0], 0.45), 0, 18));
    const calm = zones.find((zone) => zone.calm);
    if (calm) entry("calm: no more faults", block(tint(calm, 0.45), 0, 18));
    if (stepped) entry(says.steps, () => lines(pen, 1, [0, 14, 34, 14, 3, 6, 3, 14, 17, 6, 17, 14, 31, 6, 31, 14]));
  }

  // ---- keys

  const keys = {
    "+": () => zoom(0.6, centre()),
    "=": () => zoom(0.6, centre()),
    "-": () => zoom(1 / 0.6, centre()),
    "_": () => zoom(1 / 0.6, centre()),
    "0": fit,
    ArrowLeft: () => pan(-0.15),
    ArrowRight: () => pan(0.15),
    ArrowUp: () => step(-1),
    ArrowDown: () => step(1),
    k: () => step(-1),
    j: () => step(1),
    Home: () => shown.length && choose(shown[0], true),
    End: () => shown.length && choose(shown[shown.length - 1], true),
    "/": () => byId("find").focus(),
    Escape: () => { unpoint(); choose(-1, false); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.tagName === "INPUT") {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // ---- begin

  function theme() {
    readTheme();
    legend();
    redraw();
  }
  theme();
  measure();
  filter();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
  new ResizeObserver(() => { measure(); render(); }).observe(stage);
  const first = breaks.find((mark) => mark.kind === "violation");
  if (first) choose(minutes.findLastIndex((minute) => minute.at <= first.at), false);
  render();
})();
