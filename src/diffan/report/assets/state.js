// The run as stored in the page, and what the reader has chosen: cutoff, selection, truth on or off.
const run = JSON.parse(document.getElementById('run').textContent);
const SVG = document.getElementById('graph').namespaceURI;
const byId = (id) => document.getElementById(id);
const d = run.names.length;
const rank = new Array(d);  // node -> place in the causal order
run.order.forEach((node, k) => { rank[node] = k; });
const nameOf = (node) => (run.names[node].trim() ? run.names[node] : `(unnamed ${node + 1})`);

const tests = run.tests.source.map((source, k) => ({
  k, source, target: run.tests.target[k], p: run.tests.p_value[k], judged: run.tests.judged[k], kept: run.tests.kept[k] === 1,
  measures: Object.fromEntries(Object.entries(run.tests.measures).map(([name, values]) => [name, values[k]])),
}));
const testOf = new Map(tests.map((test) => [test.source * d + test.target, test]));
const curveOf = new Map((run.inspection ? run.inspection.curves : []).map((c) => [c.cause * d + c.effect, c]));
const truthEdges = new Set((run.truth ? run.truth.edges : []).map(([a, b]) => a * d + b));

const state = { cutoff: run.cutoff, selected: null, showTruth: !!run.truth, edges: [], parents: [], children: [] };

// At the run's own cutoff the run decides, which may know more than p-values; elsewhere the cutoff does.
const required = new Set(run.required.map(([a, b]) => a * d + b));
function isDrawn(test) {
  if (state.cutoff === run.cutoff) return test.kept;
  const free = test.kept === (test.judged < run.cutoff);  // else the run kept or barred the edge for another reason
  return free ? test.judged < state.cutoff : test.kept;
}

function chooseEdges() {
  state.edges = tests.filter(isDrawn).sort((a, b) => a.p - b.p || a.k - b.k);
  state.parents = Array.from({ length: d }, () => []);
  state.children = Array.from({ length: d }, () => []);
  for (const edge of state.edges) {
    state.parents[edge.target].push(edge);
    state.children[edge.source].push(edge);
  }
  for (const list of state.parents) list.sort((a, b) => rank[a.source] - rank[b.source]);
  for (const list of state.children) list.sort((a, b) => rank[a.target] - rank[b.target]);
}

function reach(node, lists, end) {
  const seen = new Set(), waiting = [node];
  while (waiting.length)
    for (const edge of lists[waiting.pop()])
      if (!seen.has(edge[end])) { seen.add(edge[end]); waiting.push(edge[end]); }
  return seen;
}
const ancestorsOf = (node) => reach(node, state.parents, 'source');
const descendantsOf = (node) => reach(node, state.children, 'target');

// Each drawn edge against the truth; missing edges are added so that they can be drawn too.
function truthMarks() {
  const marks = new Map(), drawn = new Set(state.edges.map((e) => e.source * d + e.target));
  const count = { correct: 0, reversed: 0, extra: 0, missing: 0 }, missing = [];
  for (const edge of state.edges) {
    const mark = truthEdges.has(edge.source * d + edge.target) ? 'correct'
      : truthEdges.has(edge.target * d + edge.source) ? 'reversed' : 'extra';
    marks.set(edge, mark);
    count[mark]++;
  }
  for (const key of truthEdges) {
    const source = Math.floor(key / d), target = key % d;
    if (!drawn.has(key) && !drawn.has(target * d + source)) { missing.push({ source, target, missing: true }); count.missing++; }
  }
  return { marks, count, missing, shd: count.reversed + count.extra + count.missing };
}

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  return filled(element, attributes, children);
}
function s(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

function figure(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size < 1e-300) return 'below 10⁻³⁰⁰';
  if (size < 1e-3 || size >= 1e5) {
    const [mantissa, power] = value.toExponential(1).split('e');
    return `${mantissa.replace('.0', '')}·10${superscript(Number(power))}`;
  }
  return String(Number(value.toPrecision(3)));
}
const superscript = (power) => String(power).replace(/./g, (c) => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[c]));
const plural = (count, word, many) => `${count} ${count === 1 ? word : many || word + 's'}`;
const say = (text) => { byId('said').textContent = text; };

// A colour for every place in the order: blue causes to yellow effects, ordered in lightness for every eye (cividis).
const CIVIDIS = [[0, 44, 96], [44, 65, 110], [82, 86, 109], [112, 108, 114], [140, 132, 120], [171, 157, 114], [204, 184, 98], [237, 213, 71]];
function orderColour(node) {
  const at = d > 1 ? (rank[node] / (d - 1)) * (CIVIDIS.length - 1) : 0, low = Math.min(Math.floor(at), CIVIDIS.length - 2);
  const rgb = CIVIDIS[low].map((c, k) => Math.round(c + (CIVIDIS[low + 1][k] - c) * (at - low)));
  return `color-mix(in srgb, rgb(${rgb.join(',')}), white var(--order-lift))`;
}
