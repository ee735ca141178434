"use strict";
const report = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

// Elements: `make("p", {class: "soft"}, "text", child, ..)`. Texts are never read as HTML.
function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return element;
}
const make = (name, attributes, ...children) => build(document.createElement(name), attributes, children);
const draw = (name, attributes, ...children) => build(document.createElementNS(SVG, name), attributes, children);
const titled = (element, text) => (element.append(draw("title", {}, text)), element);

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];
function bytes(count) {
  let unit = 0;
  while (count >= 1024 && unit < UNITS.length - 1) (count /= 1024), unit++;
  return `${unit ? count.toFixed(1) : count} ${unit || count !== 1 ? UNITS[unit] : "byte"}`;
}
function grouped(number) {
  return Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}
function time(nanoseconds) {
  for (const [limit, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (nanoseconds >= limit) return `${(nanoseconds / limit).toPrecision(3)} ${name}`;
  }
  return `${nanoseconds.toFixed(0)} ns`;
}
const plural = (count, word) => `${grouped(count)} ${word}${count === 1 ? "" : "s"}`;
const fileName = (file) => (report.files[file] ? report.files[file].name : "");
function placed([file, line]) {
  if (!line || !report.files[file]) return "";
  return (report.files.length > 1 ? `${fileName(file)}, ` : "") + `line ${line}`;
}
const lineLink = (place) => (placed(place) ? make("a", { href: `#line-${place[0]}-${place[1]}` }, placed(place)) : "");
const range = ([start, end, step = 1]) => (end === start + 1 ? `${start}` : step === 1 ? `${start}:${end}` : `${start}:${end}:${step}`);
const indices = (ranges) => (ranges.length ? `[${ranges.map(range).join(", ")}]` : "the number");
const hue = (at, count) => `hsl(${Math.round((360 * at) / Math.max(count, 1))} 65% 55% / .45)`;

// The chosen device of each mesh; every drawing of the mesh is made again when it changes.
class Mesh {
  constructor(data) {
    Object.assign(this, data);
    this.chosen = 0;
    this.watchers = [];
  }
  choose(position) {
    this.chosen = position;
    this.watchers.forEach((watcher) => watcher());
  }
  watched(render) {
    const holder = make("div");
    const update = () => holder.replaceChildren(render());
    this.watchers.push(update);
    update();
    return holder;
  }
  device(position) {
    return `device ${this.devices[position]}`;
  }
}

function heading(id, text) {
  document.getElementById("sections").append(make("a", { href: `#${id}` }, text));
  return make("h2", { id }, text);
}

function sourceSection(meshes) {
  const costs = new Map();
  const cost = (file, line) => {
    const key = `${file}-${line}`;
    if (!costs.has(key)) costs.set(key, { operations: 0, received: 0, estimate: 0, measured: 0, collectives: [] });
    return costs.get(key);
  };
  for (const mesh of meshes) {
    for (const line of mesh.lines) {
      const sum = cost(line.file, line.line);
      sum.operations += line.operations;
      sum.received += line.received;
      sum.estimate += line.estimate_ns;
    }
    mesh.collectives.forEach((collective) => cost(...collective.place).collectives.push(collective));
  }
  const measured = report.run ? report.run.lines : [];
  measured.forEach(({ file, line, ns }) => (cost(file, line).measured += ns));
  const columns = [
    ["operations", "operations", grouped],
    ["received", "received", bytes],
    ["estimate", "estimated", time],
    ...(report.run ? [["measured", "measured", time]] : []),
  ];
  const most = Object.fromEntries(columns.map(([key]) => [key, Math.max(1, ...[...costs.values()].map((sum) => sum[key]))]));
  const tables = report.files.map((file, number) => {
    const rows = file.text.replace(/\n$/, "").split("\n").map((text, at) => {
      const sum = costs.get(`${number}-${at + 1}`);
      const cells = columns.map(([key, , show]) => {
        const value = sum ? sum[key] : 0;
        const share = `--share: ${((100 * value) / most[key]).toFixed(1)}%`;
        return make("td", { class: "number", style: value ? share : undefined }, value ? show(value) : "");
      });
      const links = sum ? sum.collectives.map((it) => [" ", make("a", { href: `#${it.id}` }, it.kind)]) : [];
      return make("tr", { id: `line-${number}-${at + 1}` }, make("td", { class: "number soft" }, at + 1), make("td", { class: "code" }, text, ...links), cells);
    });
    const head = make("tr", {}, make("th", { class: "number" }, "line"), make("th", {}, file.name), columns.map(([, name]) => make("th", { class: "number" }, name)));
    return make("div", { class: "scroll" }, make("table", { class: "source" }, make("thead", {}, head), make("tbody", {}, rows)));
  });
  const of = "Operations, bytes received and times are those of one device over the whole run.";
  return [heading("source", "Source"), make("p", { class: "soft" }, of), tables];
}

function devicePicker(mesh) {
  const last = mesh.axes.length ? mesh.axes[mesh.axes.length - 1].size : 1;
  return mesh.watched(() => {
    const buttons = mesh.devices.map((number, position) =>
      make("button", { "aria-pressed": String(position === mesh.chosen), onclick: () => mesh.choose(position) }, String(number)),
    );
    const grid = make("div", { class: "devices", style: `grid-template-columns: repeat(${last}, auto)`, role: "group", "aria-label": "Devices" }, buttons);
    return make("div", {}, grid);
  });
}

// Two dimensions of an array and its blocks; leading dimensions are tables below each other.
function layout(mesh, value) {
  const rank = value.shape.length;
  const [rows, columns] = [rank > 1 ? value.shape[rank - 2] : 1, rank ? value.shape[rank - 1] : 1];
  const heads = new Map();
  for (const block of value.blocks) {
    const head = JSON.stringify(block.range.slice(0, Math.max(rank - 2, 0)));
    heads.set(head, [...(heads.get(head) || []), block]);
  }
  const ratio = rank > 1 ? Math.min(Math.max(rows / columns, 0.12), 1.2) : 0.12;
  const [width, height] = [240, Math.max(26, Math.round(240 * ratio))];
  const shown = [...heads.keys()].slice(0, 8);
  const total = shown.length * (height + 20);
  const label = value.blocks.map((block) => `${indices(block.range)} on devices ${block.devices.map((at) => mesh.devices[at]).join(" ")}`);
  const svg = draw("svg", { viewBox: `0 0 ${width + 2} ${total + 2}`, width: width + 2, height: total + 2, role: "img", "aria-label": label.join("; ") });
  shown.forEach((head, at) => {
    const top = at * (height + 20) + 15;
    const leading = JSON.parse(head);
    const title = leading.length ? indices(leading).replace("]", ", ..]") : value.shape.length ? `${value.shape.join(" x ")}` : "a number";
    svg.append(draw("text", { x: 1, y: top - 4, class: "soft" }, title));
    for (const block of heads.get(head)) {
      const [down, across] = [rank > 1 ? block.range[rank - 2] : [0, 1], rank ? block.range[rank - 1] : [0, 1]];
      const box = {
        x: 1 + (width * across[0]) / columns, y: top + (height * down[0]) / rows,
        width: (width * (across[1] - across[0])) / columns, height: (height * (down[1] - down[0])) / rows,
      };
      const holds = block.devices.includes(mesh.chosen);
      const place = value.blocks.indexOf(block);
      const names = block.devices.map((position) => mesh.devices[position]);
      const text = names.length > 6 ? `${names.slice(0, 5).join(" ")} ..` : names.join(" ");
      const drawn = draw("rect", { ...box, fill: hue(place, value.blocks.length), stroke: "var(--page)", class: holds ? "chosen" : undefined });
      svg.append(titled(drawn, `${indices(block.range)}: devices ${names.join(", ")}`));
      if (box.width > 7 * text.length && box.height > 13) {
        svg.append(draw("text", { x: box.x + box.width / 2, y: box.y + box.height / 2 + 4, "text-anchor": "middle" }, text));
      }
    }
    svg.append(draw("rect", { x: 1, y: top, width, height, class: "frame" }));
  });
  return svg;
}

function valuesSection(mesh, suffix) {
  const several = mesh.devices.length > 1;
  const cards = mesh.values.map((value) => {
    const drawing = several && value.blocks.length ? mesh.watched(() => layout(mesh, value)) : "";
    const own = mesh.watched(() => {
      const block = value.blocks.find((block) => block.devices.includes(mesh.chosen));
      return make("p", { class: "soft" }, block ? `${mesh.device(mesh.chosen)}: ${indices(block.range)}` : "");
    });
    return make("div", { class: "card" }, make("h3", {}, value.name), make("p", { class: "type" }, value.type),
      make("p", { class: "soft" }, bytes(value.bytes), " per device ", lineLink(value.place)), drawing, several && value.blocks.length ? own : "",
      value.remarks.map((remark) => make("p", { class: "soft" }, remark)));
  });
  const axes = mesh.axes.map((axis) => `${axis.name} = ${axis.size}${axis.explicit ? " (explicit)" : ""}`);
  const words = axes.length ? `The mesh (${axes.join(", ")}). ` : "";
  if (!cards.length) return [];
  const picker = several ? [make("p", {}, words, "Choose a device to see its blocks:"), devicePicker(mesh)] : [];
  return [heading(`values${suffix}`, `Layouts${mesh.title}`), picker, make("div", { class: "cards" }, cards)];
}

// The devices in a circle, and an arrow for each message of a phase.
function messages(mesh, phase) {
  const count = mesh.devices.length;
  const radius = Math.max(70, Math.min(220, count * 11));
  const center = radius + 22;
  const at = (position) => {
    const angle = (2 * Math.PI * position) / count - Math.PI / 2;
    return [center + radius * Math.cos(angle), center + radius * Math.sin(angle)];
  };
  const label = phase.moves.map((move) => `device ${mesh.devices[move.from]} sends ${bytes(move.bytes)} to device ${mesh.devices[move.to]}`);
  const svg = draw("svg", { viewBox: `0 0 ${2 * center} ${2 * center}`, width: 2 * center, height: 2 * center, role: "img", "aria-label": label.join("; ") });
  const marker = draw("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, draw("path", { d: "M0 0 8 4 0 8z", fill: "var(--mark)" }));
  svg.append(draw("defs", {}, marker));
  for (const move of phase.moves) {
    const [[x, y], [u, v]] = [at(move.from), at(move.to)];
    const length = Math.hypot(u - x, v - y) || 1;
    const [dx, dy] = [((u - x) / length) * 13, ((v - y) / length) * 13];
    const bend = [(x + u) / 2 + (center - (x + u) / 2) * 0.25 - (v - y) * 0.08, (y + v) / 2 + (center - (y + v) / 2) * 0.25 + (u - x) * 0.08];
    const chosen = move.from === mesh.chosen || move.to === mesh.chosen;
    const arrow = draw("path", { d: `M${x + dx} ${y + dy}Q${bend[0]} ${bend[1]} ${u - dx} ${v - dy}`, class: chosen ? "arrow chosen" : "arrow", "marker-end": "url(#head)" });
    svg.append(titled(arrow, `device ${mesh.devices[move.from]} sends ${indices(move.range)}, ${bytes(move.bytes)}, to device ${mesh.devices[move.to]}`));
  }
  mesh.devices.forEach((number, position) => {
    const [x, y] = at(position);
    svg.append(draw("circle", { cx: x, cy: y, r: 12, fill: "var(--card)", stroke: "var(--line)", class: position === mesh.chosen ? "chosen" : undefined }));
    svg.append(draw("text", { x, y: y + 4, "text-anchor": "middle" }, String(number)));
  });
  return svg;
}

function stepThrough(mesh, collective) {
  let step = 0;
  const { phases } = collective;
  const holder = mesh.watched(() => {
    const phase = phases[step];
    const move = (by) => () => {
      step = Math.min(Math.max(step + by, 0), phases.length - 1);
      mesh.watchers.forEach((watcher) => watcher());
    };
    const own = phase.moves.filter((sent) => sent.from === mesh.chosen || sent.to === mesh.chosen);
    const rows = own.map((sent) => {
      const sends = sent.from === mesh.chosen;
      const other = mesh.device(sends ? sent.to : sent.from);
      return make("li", {}, `${sends ? "sends" : "receives"} ${indices(sent.range)}, ${bytes(sent.bytes)}, ${sends ? "to" : "from"} ${other}`);
    });
    return make("div", {},
      make("div", { class: "steps" },
        make("button", { onclick: move(-1), disabled: step === 0, "data-step": "back" }, "Back"),
        make("button", { onclick: move(1), disabled: step === phases.length - 1, "data-step": "next" }, "Next"),
        make("span", { role: "status" }, `Step ${step + 1} of ${phases.length}. ${phase.title}`)),
      messages(mesh, phase),
      collective.is_local ? make("p", { class: "soft" }, "Indices are those of the sender's own value.") : "",
      make("p", {}, `${mesh.device(mesh.chosen)}:`), make("ul", {}, rows.length ? rows : make("li", {}, "sends and receives nothing")));
  });
  return holder;
}

function collectivesSection(mesh, suffix) {
  if (!mesh.collectives.length) return [heading(`collectives${suffix}`, `Collectives${mesh.title}`), make("p", {}, "No device sends anything.")];
  const items = mesh.collectives.map((collective) => {
    const often = collective.trips === null ? "an unknown number of times" : collective.trips === 1 ? "once" : `${grouped(collective.trips)} times`;
    const types = collective.from && collective.to ? `${collective.from} to ${collective.to}` : collective.from || collective.to;
    const details = make("details", {}, make("summary", {}, "who sends what to whom"));
    if (collective.phases.length) {
      details.addEventListener("toggle", () => details.children.length > 1 || details.append(stepThrough(mesh, collective)));
    }
    return make("div", { class: "card", id: collective.id }, make("h3", {}, collective.axes.length ? `${collective.kind} over ${collective.axes.join(", ")}` : collective.kind),
      make("p", { class: "type" }, types), make("p", {}, collective.reason),
      make("p", { class: "soft" }, `A device has ${bytes(collective.bytes)} and receives at most ${bytes(collective.received)}, ${often}. `, lineLink(collective.place)),
      collective.phases.length ? details : "");
  });
  return [heading(`collectives${suffix}`, `Collectives${mesh.title}`), make("div", { class: "cards wide" }, items)];
}

// Time goes to the right by statements, and memory down by addresses.
function memorySection(mesh, suffix) {
  const { buffers, moments } = mesh;
  if (!buffers.length) return [];
  const [width, height, left] = [900, 320, 70];
  const end = Math.max(...buffers.map((buffer) => buffer.offset + buffer.bytes), 1);
  const last = Math.max(moments.length, 1);
  const svg = draw("svg", { viewBox: `0 0 ${width + left} ${height + 30}`, width: width + left, height: height + 30, role: "img", "aria-label": "Memory of a device over time; the table below has the same buffers" });
  buffers.forEach((buffer, at) => {
    const box = {
      x: left + (width * buffer.first) / last, y: (height * buffer.offset) / end,
      width: Math.max(2, (width * (buffer.last + 1 - buffer.first)) / last), height: Math.max(1, (height * buffer.bytes) / end),
    };
    svg.append(titled(draw("rect", { ...box, fill: hue(at, buffers.length), stroke: "var(--page)" }), `${buffer.name}: ${buffer.type}, ${bytes(buffer.bytes)}, ${placed(buffer.place)}`));
    if (box.height > 13 && box.width > 7 * buffer.name.length) svg.append(draw("text", { x: box.x + 4, y: box.y + Math.min(box.height / 2 + 4, 16) }, buffer.name));
  });
  svg.append(draw("rect", { x: left, y: 0, width, height, class: "frame" }));
  svg.append(draw("text", { x: left - 6, y: 11, "text-anchor": "end", class: "soft" }, "0"), draw("text", { x: left - 6, y: height, "text-anchor": "end", class: "soft" }, bytes(end)));
  svg.append(draw("text", { x: left, y: height + 18, class: "soft" }, "first statement"), draw("text", { x: left + width, y: height + 18, "text-anchor": "end", class: "soft" }, "last statement"));
  const rows = [...buffers].sort((a, b) => b.bytes - a.bytes).slice(0, 40).map((buffer) =>
    make("tr", {}, make("td", {}, buffer.name), make("td", { class: "code" }, buffer.type), make("td", { class: "number" }, bytes(buffer.bytes)), make("td", {}, lineLink(buffer.place))));
  const table = make("table", {}, make("thead", {}, make("tr", {}, make("th", {}, "value"), make("th", {}, "type"), make("th", { class: "number" }, "bytes"), make("th", {}, "line"))), make("tbody", {}, rows));
  const words = `A device needs ${bytes(mesh.memory_per_device)}. Each box is a buffer, from the statement that writes it to the last that uses it.`;
  return [heading(`memory${suffix}`, `Memory${mesh.title}`), make("p", { class: "soft" }, words), make("div", { class: "scroll" }, svg), make("details", {}, make("summary", {}, "the largest buffers"), table)];
}

function timelineSection() {
  const { timeline } = report.program;
  if (!timeline) return [];
  const [width, row, left] = [860, 26, 110];
  const height = timeline.meshes.length * row;
  const trips = Math.max(1, ...timeline.meshes.flatMap((mesh) => mesh.spans.map((span) => (span[2] ?? 0) + 1)));
  const svg = draw("svg", { viewBox: `0 0 ${width + left} ${height + 22}`, width: width + left, height: height + 22, role: "img", "aria-label": timeline.meshes.map((mesh) => `${mesh.name} works for ${time(mesh.busy_ns)}`).join("; ") });
  timeline.meshes.forEach((mesh, at) => {
    svg.append(draw("text", { x: left - 6, y: at * row + 17, "text-anchor": "end" }, `${mesh.name} (${mesh.devices})`));
    for (const [begin, end, trip] of mesh.spans) {
      const box = { x: left + (width * begin) / timeline.total_ns, y: at * row + 3, width: Math.max(0.5, (width * (end - begin)) / timeline.total_ns), height: row - 6 };
      svg.append(titled(draw("rect", { ...box, fill: trip === null ? "var(--line)" : hue(trip, trips) }), `${trip === null ? "" : `trip ${trip}: `}${time(begin)} to ${time(end)}`));
    }
  });
  svg.append(draw("rect", { x: left, y: 0, width, height, class: "frame" }), draw("text", { x: left + width, y: height + 16, "text-anchor": "end", class: "soft" }, time(timeline.total_ns)));
  const rows = timeline.meshes.map((mesh) => make("li", {}, `${mesh.name}: ${plural(mesh.devices, "device")}, works for ${time(mesh.busy_ns)} of ${time(timeline.total_ns)}${mesh.name === "output" ? "; it is the first device of all, where it prints for all meshes" : ""}`));
  return [heading("timeline", "Timeline"), make("p", { class: "soft" }, "The schedule of the meshes by the cost model; each trip of a loop has a colour."), make("div", { class: "scroll" }, svg), make("ul", {}, rows)];
}

function rooflineSection(meshes) {
  if (!report.run) return [];
  const measured = new Map(report.run.lines.map((line) => [`${line.file}-${line.line}`, line.compute_ns]));
  const points = meshes.flatMap((mesh) => mesh.lines).filter((line) => line.operations && line.touched && measured.get(`${line.file}-${line.line}`) > 0)
    .map((line) => ({ line, x: line.operations / line.touched, y: line.operations / measured.get(`${line.file}-${line.line}`) }));
  const { operations_per_ns: top, bytes_per_ns: slope } = report.roofs;
  const [width, height, left] = [640, 320, 60];
  const xs = [0.01, ...points.map((point) => point.x), (4 * top) / slope];
  const ys = [0.1, ...points.map((point) => point.y), top * 1.5];
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)].map(Math.log10);
  const x = (value) => left + (width * (Math.log10(value) - x0)) / (x1 - x0);
  const y = (value) => height - (height * (Math.log10(value) - y0)) / (y1 - y0);
  const svg = draw("svg", { viewBox: `0 0 ${width + left + 10} ${height + 40}`, width: width + left + 10, height: height + 40, role: "img", "aria-label": "Roofline; the table below has the same lines" });
  const knee = top / slope;
  svg.append(draw("path", { class: "arrow", d: `M${x(10 ** x0)} ${y(Math.max(slope * 10 ** x0, 10 ** y0))}L${x(knee)} ${y(top)}L${x(10 ** x1)} ${y(top)}` }));
  points.forEach((point, at) => {
    svg.append(titled(draw("circle", { cx: x(point.x), cy: y(point.y), r: 5, fill: hue(at, points.length), stroke: "var(--text)" }), `${placed([point.line.file, point.line.line])}: ${point.y.toPrecision(3)} operations per ns`));
    svg.append(draw("text", { x: x(point.x) + 7, y: y(point.y) + 4 }, String(point.line.line)));
  });
  svg.append(draw("rect", { x: left, y: 0, width, height, class: "frame" }));
  svg.append(draw("text", { x: left + width / 2, y: height + 30, "text-anchor": "middle", class: "soft" }, "operations for each byte of memory that a line reads or writes"));
  svg.append(draw("text", { x: 14, y: height / 2, transform: `rotate(-90 14 ${height / 2})`, "text-anchor": "middle", class: "soft" }, "operations per nanosecond"));
  const rows = points.map((point) => make("tr", {}, make("td", {}, lineLink([point.line.file, point.line.line])), make("td", { class: "number" }, point.x.toPrecision(3)), make("td", { class: "number" }, point.y.toPrecision(3))));
  const table = make("table", {}, make("thead", {}, make("tr", {}, make("th", {}, "line"), make("th", { class: "number" }, "operations per byte"), make("th", { class: "number" }, "operations per ns"))), make("tbody", {}, rows));
  return [heading("roofline", "Roofline"), make("p", { class: "soft" }, "Each point is a line on one device. The roofs are those of the cost model for one core."), make("div", { class: "scroll" }, svg), make("details", {}, make("summary", {}, "the lines"), table)];
}

function start() {
  const meshes = report.program.meshes.map((mesh) => new Mesh(mesh));
  const several = meshes.length > 1;
  meshes.forEach((mesh, number) => {
    mesh.title = several ? ` of ${mesh.name}` : "";
    mesh.collectives.forEach((collective, at) => (collective.id = `collective-${number}-${at}`));
  });
  const summary = meshes.map((mesh) => {
    const received = mesh.lines.reduce((sum, line) => sum + line.received, 0);
    const estimate = mesh.lines.reduce((sum, line) => sum + line.estimate_ns, 0);
    const words = [plural(mesh.devices.length, "device"), `${bytes(mesh.memory_per_device)} of memory each`, plural(mesh.operations, "operation"), `${bytes(received)} received`, `about ${time(estimate)}`];
    return `${several ? `${mesh.name}: ` : ""}${words.join(", ")}.`;
  });
  if (report.run) summary.push(`The measured run took ${time(report.run.ns)}.`);
  document.getElementById("summary").append(summary.join(" "));
  const sections = [sourceSection(meshes), meshes.map((mesh, at) => [valuesSection(mesh, several ? `-${at}` : ""), collectivesSection(mesh, several ? `-${at}` : ""), memorySection(mesh, several ? `-${at}` : "")]), timelineSection(), rooflineSection(meshes)];
  document.getElementById("main").replaceChildren(...sections.flat(Infinity).filter((child) => child));
}
start();
