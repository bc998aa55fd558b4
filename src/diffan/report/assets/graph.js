// The graph: boxes, routed arrows, pan, zoom and selection.
const canvas = byId('graph'), view = byId('view'), floating = byId('floating');
const scene = { layout: null, drawn: [], nodes: [], byNode: [], x: 0, y: 0, k: 1, labels: [], widths: [] };
const MOST_LABEL = 150, FAR = 7.5, NEAREST = 3;

const measuring = document.createElement('canvas').getContext('2d');
function textWidth(text) {
  measuring.font = '500 13px system-ui, "Segoe UI", "Liberation Sans", sans-serif';
  return measuring.measureText(text).width;
}
function shortened(text) {
  if (textWidth(text) <= MOST_LABEL) return text;
  let letters = Array.from(text).slice(0, 60);
  while (letters.length > 1 && textWidth(letters.join('') + '…') > MOST_LABEL) letters.pop();
  return letters.join('') + '…';
}
scene.labels = run.names.map((_, node) => shortened(nameOf(node)));
scene.widths = scene.labels.map((label) => Math.max(44, Math.ceil(textWidth(label)) + 30));

function routePath(route) {
  let path = `M${route[0][0].toFixed(1)} ${route[0][1].toFixed(1)}`;
  for (let k = 1; k < route.length; k++) {
    const [x0, y0] = route[k - 1], [x1, y1] = route[k], middle = (y0 + y1) / 2;
    path += x0 === x1 ? `V${y1.toFixed(1)}`
      : `C${x0.toFixed(1)} ${middle.toFixed(1)} ${x1.toFixed(1)} ${middle.toFixed(1)} ${x1.toFixed(1)} ${y1.toFixed(1)}`;
  }
  return path;
}

function edgeWidth(edge) {
  if (edge.missing) return 1.4;
  const frequency = edge.measures.frequency;
  if (frequency !== undefined && frequency !== null) return 0.8 + 3.4 * frequency;
  return 1.3 + 1.3 * Math.min(-Math.log10(Math.max(edge.p, 1e-30)) / 20, 1);
}

function drawGraph() {
  const truth = state.showTruth ? truthMarks() : null;
  scene.drawn = [...state.edges, ...(truth ? truth.missing : [])];
  // The layout numbers nodes along the order; an edge against it is laid out the other way round.
  const ends = scene.drawn.map((e) => [rank[e.source], rank[e.target]]);
  const layout = placeGraph(run.order.map((node) => scene.widths[node]), ends.map(([a, b]) => [Math.min(a, b), Math.max(a, b)]));
  scene.layout = layout;
  const edgeLayer = byId('edges'), nodeLayer = byId('nodes');
  edgeLayer.replaceChildren(...scene.drawn.map((edge, k) => drawnEdge(edge, layout.routes[k], ends[k][0] > ends[k][1], truth)));
  if (!scene.nodes.length) {
    scene.nodes = run.order.map(drawnNode);
    run.order.forEach((node, place) => { scene.byNode[node] = scene.nodes[place]; });
    nodeLayer.replaceChildren(...scene.nodes);
  }
  scene.nodes.forEach((box, place) => { box.style.transform = `translate(${layout.x[place]}px, ${layout.y[place]}px)`; });
  const word = `Causal graph of ${plural(d, 'variable')} and ${plural(state.edges.length, 'edge')}, causes above effects. `;
  canvas.setAttribute('aria-label', word + 'Arrow keys walk along the edges, plus and minus zoom, zero fits.');
  showSelection();
}

function drawnEdge(edge, route, upwards, truth) {
  const mark = truth ? (edge.missing ? 'missing' : truth.marks.get(edge)) : '';
  const tipAt = upwards ? route[0] : route[route.length - 1], way = upwards ? -1 : 1;
  const line = route.map(([x, y]) => [x, y]);
  line[upwards ? 0 : line.length - 1][1] -= way * 7;
  const [x, y] = tipAt;
  const group = s('g', { class: `edge ${mark}`, onclick: () => edge.missing ? say('This true edge was not found.') : select({ edge }) },
    s('path', { class: 'hit', d: routePath(route) }),
    s('path', { class: 'line', d: routePath(line), 'stroke-width': edgeWidth(edge).toFixed(2) }),
    s('path', { class: 'tip', d: `M${x} ${y}l-4.6 ${-way * 9.5}q4.6 ${way * 2.6} 9.2 0z` }),
    s('title', {}, edge.missing ? `${nameOf(edge.source)} → ${nameOf(edge.target)}: true, not found` : `${nameOf(edge.source)} → ${nameOf(edge.target)}: p = ${figure(edge.p)}${mark ? ', ' + mark : ''}`));
  edge.element = group;
  return group;
}

function drawnNode(node) {
  const width = scene.widths[node], half = width / 2;
  return s('g', {
    class: 'node', id: `node-${node}`, role: 'option', 'aria-selected': 'false', 'aria-label': nameOf(node),
    onclick: (event) => { event.stopPropagation(); select({ node }); },
  },
    s('title', {}, nameOf(node)),
    s('rect', { class: 'box', x: -half, y: -15, width, height: 30, rx: 8 }),
    s('rect', { class: 'place', x: -half + 7, y: -8, width: 5, height: 16, rx: 2.5, style: `fill: ${orderColour(node)}` }),
    s('rect', { class: 'blob', x: -half, y: -15, width, height: 30, rx: 8, style: `fill: ${orderColour(node)}` }),
    s('text', { x: 6, y: 0.5 }, scene.labels[node]));
}

// Asked for once and again after a resize: asking makes the browser lay out everything that is new.
function canvasSize() {
  if (!scene.size) scene.size = canvas.getBoundingClientRect();
  return scene.size;
}

function applyView() {
  view.setAttribute('transform', `translate(${scene.x} ${scene.y}) scale(${scene.k})`);
  const far = scene.k * 13 < FAR;
  canvas.classList.toggle('far', far);
  floatLabels(far);
}

// Far out, the labels of the selection and of the best connected variables float above the boxes, none over another.
function floatLabels(far) {
  floating.replaceChildren();
  if (!far || !scene.layout) return;
  const { width, height } = canvasSize(), taken = [];
  const wanted = run.order.map((node, place) => ({ node, place, weight: state.parents[node].length + state.children[node].length }));
  for (const one of wanted) if (scene.byNode[one.node].classList.contains('on')) one.weight += 1e6;
  wanted.sort((a, b) => b.weight - a.weight || a.place - b.place);
  for (const { node, place, weight } of wanted) {
    if (taken.length >= 70 || !weight) break;
    const x = scene.x + scene.k * scene.layout.x[place], y = scene.y + scene.k * scene.layout.y[place] - 10;
    const half = scene.labels[node].length * 3.3 + 7;
    if (x < half || y < 10 || x > width - half || y > height - 6) continue;
    if (taken.some((t) => Math.abs(t.x - x) < t.half + half && Math.abs(t.y - y) < 18)) continue;
    taken.push({ x, y, half });
    floating.append(s('g', { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
      s('rect', { x: -half, y: -8, width: 2 * half, height: 16, rx: 5 }), s('text', {}, scene.labels[node])));
  }
}

function fit() {
  const { width, height } = canvasSize(), layout = scene.layout;
  if (!width || !layout) return;
  const margin = 26;
  scene.k = Math.min((width - 2 * margin) / Math.max(layout.width, 1), (height - 2 * margin) / Math.max(layout.height, 1), 1.6);
  scene.x = (width - scene.k * layout.width) / 2;
  scene.y = (height - scene.k * layout.height) / 2;
  applyView();
}

function zoom(factor, cx, cy) {
  const { width, height } = canvasSize();
  const x = cx === undefined ? width / 2 : cx, y = cy === undefined ? height / 2 : cy;
  const k = Math.min(Math.max(scene.k * factor, 0.02), NEAREST);
  scene.x = x - ((x - scene.x) * k) / scene.k;
  scene.y = y - ((y - scene.y) * k) / scene.k;
  scene.k = k;
  applyView();
}

function centreOn(node) {
  const { width, height } = canvasSize();
  const nx = scene.layout.x[rank[node]], ny = scene.layout.y[rank[node]];
  const sx = scene.x + scene.k * nx, sy = scene.y + scene.k * ny;
  const hidden = sx < 60 || sy < 40 || sx > width - 60 || sy > height - 40;
  if (!hidden && scene.k * 13 >= FAR) return;
  scene.k = Math.max(scene.k, 0.8);
  scene.x = width / 2 - scene.k * nx;
  scene.y = height / 2 - scene.k * ny;
  applyView();
}

function select(choice) {
  state.selected = choice;
  showSelection();
  showPanel();
  if (choice && choice.node !== undefined) centreOn(choice.node);
  applyView();
}

function showSelection() {
  const choice = state.selected, on = (element, ...names) => element && element.classList.add('on', ...names);
  for (const box of scene.nodes) { box.classList.remove('on', 'chosen'); box.setAttribute('aria-selected', 'false'); }
  for (const edge of scene.drawn) edge.element.classList.remove('on', 'into', 'outof', 'chosen', 'upstream');
  canvas.classList.toggle('focused', !!choice);
  canvas.removeAttribute('aria-activedescendant');
  if (!choice) return;
  if (choice.node !== undefined) {
    const box = scene.byNode[choice.node], ancestors = ancestorsOf(choice.node);
    on(box, 'chosen');
    box.setAttribute('aria-selected', 'true');
    canvas.setAttribute('aria-activedescendant', box.id);
    for (const edge of state.edges)
      if (edge.target !== choice.node && ancestors.has(edge.target) && ancestors.has(edge.source)) on(edge.element, 'upstream');
    for (const node of ancestors) on(scene.byNode[node]);
    for (const edge of scene.drawn) {
      if (edge.target === choice.node) { on(edge.element, 'into'); on(scene.byNode[edge.source]); }
      if (edge.source === choice.node) { on(edge.element, 'outof'); on(scene.byNode[edge.target]); }
    }
  } else {
    const { edge } = choice;
    on(scene.byNode[edge.source]);
    on(scene.byNode[edge.target]);
    on(state.edges.includes(edge) ? edge.element : null, 'chosen');
  }
}

function walk(key) {
  const at = state.selected && state.selected.node;
  if (at === undefined || at === null) return select({ node: run.order[0] });
  const next = { ArrowUp: state.parents[at].map((e) => e.source), ArrowDown: state.children[at].map((e) => e.target),
    ArrowLeft: [run.order[rank[at] - 1]], ArrowRight: [run.order[rank[at] + 1]] }[key][0];
  if (next !== undefined) select({ node: next });
  else say(`${nameOf(at)} has no ${{ ArrowUp: 'parent', ArrowDown: 'child', ArrowLeft: 'earlier variable', ArrowRight: 'later variable' }[key]}.`);
}

function onGraphKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = { '+': () => zoom(1.3), '=': () => zoom(1.3), '-': () => zoom(1 / 1.3), 0: fit, Escape: () => select(null) };
  if (event.key.startsWith('Arrow')) walk(event.key);
  else if (actions[event.key]) actions[event.key]();
  else return;
  event.preventDefault();
}

function listenToPointers() {
  const held = new Map();
  let moved = 0;
  canvas.addEventListener('pointerdown', (event) => { held.set(event.pointerId, [event.clientX, event.clientY]); moved = 0; });
  canvas.addEventListener('pointermove', (event) => {
    if (!held.has(event.pointerId)) return;
    const [x, y] = held.get(event.pointerId), others = [...held].filter(([id]) => id !== event.pointerId);
    moved += Math.abs(event.clientX - x) + Math.abs(event.clientY - y);
    if (moved > 4 && !canvas.hasPointerCapture(event.pointerId)) canvas.setPointerCapture(event.pointerId);
    if (others.length) {
      const [ox, oy] = others[0][1], box = canvas.getBoundingClientRect();
      const before = Math.hypot(x - ox, y - oy), after = Math.hypot(event.clientX - ox, event.clientY - oy);
      if (before > 0) zoom(after / before, ox - box.left, oy - box.top);
    } else if (moved > 4) {
      scene.x += event.clientX - x;
      scene.y += event.clientY - y;
      applyView();
    }
    held.set(event.pointerId, [event.clientX, event.clientY]);
  });
  for (const name of ['pointerup', 'pointercancel', 'lostpointercapture'])
    canvas.addEventListener(name, (event) => held.delete(event.pointerId));
  canvas.addEventListener('click', (event) => { if (moved <= 4 && (event.target === canvas)) select(null); });
  canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) { byId('hint').classList.add('shown'); return; }
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.0025), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  canvas.addEventListener('pointerleave', () => byId('hint').classList.remove('shown'));
  canvas.addEventListener('keydown', onGraphKey);
}
