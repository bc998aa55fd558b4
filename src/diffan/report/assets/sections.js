// Everything below the graph: diagnostics, order, edges, heat maps, losses, times and settings.
function showDiagnostics() {
  const list = run.inspection ? run.inspection.diagnostics : [];
  const items = list.map((one) => h('li', { class: one.level }, badge(one.level), h('div', {}, h('h3', {}, one.topic),
    h('p', {}, one.text), one.advice ? h('p', { class: 'advice' }, h('b', {}, 'What to do: '), one.advice) : null)));
  const warnings = run.warnings.map((text) => h('li', { class: 'doubt' }, badge('doubt'), h('div', {}, h('h3', {}, 'The run warned'), h('p', {}, text))));
  const level = { doubt: 0, note: 1, fine: 2 };
  const sorted = [...warnings, ...items].sort((a, b) => level[a.className] - level[b.className]);
  byId('checks').replaceChildren(...sorted);
  byId('diagnostics').hidden = !sorted.length;
}

function showOrder() {
  const margins = new Map(run.leaves.map((step) => [step.leaf, step]));
  const mended = run.leaves.length && run.leaves.some((step, k) => rank[step.leaf] !== d - 1 - k);
  byId('order-note').textContent = run.leaves.length
    ? `Causes first. The bar under a variable shows how clearly it was chosen as a leaf: full when nothing else came near, empty for a tie.${mended ? ' The order was changed after the leaves were chosen, or a vote overruled the bar.' : ''}`
    : 'Causes first. This method keeps no evidence of its choices.';
  byId('order').replaceChildren(...run.order.map((node, place) => {
    const step = margins.get(node), bar = h('i', { class: 'margin' });
    if (step) bar.append(filledBar(step.margin));
    const tip = step ? `${nameOf(node)}: criterion ${figure(step.value)}, next ${nameOf(step.second)} with ${figure(step.next)}; margin ${share(step.margin)}` : nameOf(node);
    const button = h('button', { type: 'button', title: tip, 'aria-label': `${place + 1}: ${tip}`, onclick: () => { select({ node }); byId('stage').scrollIntoView({ block: 'nearest' }); } },
      h('small', {}, String(place + 1)), h('span', {}, nameOf(node)), step ? bar : null);
    button.style.borderTopColor = orderColour(node);
    return h('li', {}, button);
  }));
}
function filledBar(part) {
  const bar = h('b', {});
  bar.style.width = `${Math.max(100 * part, 2)}%`;
  return bar;
}

const table = { sort: 'p', turned: false, all: false };
const FIRST_ROWS = 100;
function showEdges() {
  const names = ['frequency', 'direction_frequency', 'nats', 'deviance_explained', 'edf', 'f_statistic', 'r2'];
  const known = Object.keys(run.tests.measures), measures = [...names.filter((n) => known.includes(n)), ...known.filter((n) => !names.includes(n))];
  const columns = [['source', 'cause'], ['target', 'effect'], ['p', 'p-value'], ...measures.map((n) => [n, (MEASURES[n] || [n.replaceAll('_', ' ')])[0]])];
  const value = (edge, key) => (key === 'source' || key === 'target' ? rank[edge[key]] : key === 'p' ? edge.p : edge.measures[key]);
  const rows = state.edges.slice().sort((a, b) => ((value(a, table.sort) ?? Infinity) - (value(b, table.sort) ?? Infinity)) * (table.turned ? -1 : 1));
  const marks = state.showTruth ? truthMarks().marks : null;
  const head = columns.map(([key, word]) => h('th', { scope: 'col', 'aria-sort': table.sort === key ? (table.turned ? 'descending' : 'ascending') : 'none' },
    h('button', { type: 'button', onclick: () => { table.turned = table.sort === key && !table.turned; table.sort = key; showEdges(); byId(`sort-${key}`).focus(); }, id: `sort-${key}` }, word)));
  if (marks) head.push(h('th', { scope: 'col' }, 'truth'));
  const shown = table.all ? rows : rows.slice(0, FIRST_ROWS);
  byId('edge-rows').replaceChildren(h('thead', {}, h('tr', {}, head)), h('tbody', {}, shown.map((edge) => h('tr', { onclick: () => select({ edge }) },
    h('th', { scope: 'row' }, nameOf(edge.source)), h('td', {}, h('button', { type: 'button', class: 'link', 'aria-label': `Show ${nameOf(edge.source)} to ${nameOf(edge.target)}`, onclick: () => select({ edge }) }, nameOf(edge.target))),
    h('td', { class: 'number' }, figure(edge.p)), measures.map((name) => h('td', { class: 'number' }, figure(edge.measures[name]))),
    marks ? h('td', { class: `mark ${marks.get(edge)}` }, marks.get(edge)) : null))));
  byId('more-edges').hidden = rows.length <= shown.length;
  byId('more-edges').textContent = `Show all ${rows.length} edges`;
  byId('no-edges').hidden = rows.length > 0;
}

function themeColour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

// A square of cells, rows causes and columns effects, both along the causal order.
function heatMap(board, cells, pick, tip) {
  const labelled = d <= 40, longest = labelled ? Math.max(...scene.labels.map((l) => l.length)) : 0;
  const margin = labelled ? Math.min(12 + longest * 6.2, 130) : 14;
  const side = Math.max(2, Math.min(34, Math.floor((560 - margin) / d))), size = margin + side * d + 2;
  const density = window.devicePixelRatio || 1, ink = board.getContext('2d');
  board.width = size * density; board.height = size * density;
  board.style.width = board.style.maxWidth = `${size}px`;
  ink.scale(density, density);
  ink.fillStyle = themeColour('--heat-ground');
  ink.fillRect(margin, margin, side * d, side * d);
  const gap = side > 6 ? 1 : 0;
  for (const { row, column, colour } of cells) {
    ink.fillStyle = colour;
    ink.fillRect(margin + column * side + gap / 2, margin + row * side + gap / 2, side - gap, side - gap);
  }
  ink.fillStyle = themeColour('--ink-soft');
  ink.font = `${Math.min(11, side - 1)}px system-ui, sans-serif`;
  ink.textBaseline = 'middle';
  if (labelled) run.order.forEach((node, k) => {
    ink.textAlign = 'right';
    ink.fillText(clip(scene.labels[node], 19), margin - 5, margin + (k + 0.5) * side);
    ink.save();
    ink.translate(margin + (k + 0.5) * side, margin - 5);
    ink.rotate(-Math.PI / 2);
    ink.textAlign = 'left';
    ink.fillText(clip(scene.labels[node], 19), 0, 0);
    ink.restore();
  });
  const cellAt = (event) => {
    const box = board.getBoundingClientRect(), scale = size / box.width;
    const row = Math.floor(((event.clientY - box.top) * scale - margin) / side), column = Math.floor(((event.clientX - box.left) * scale - margin) / side);
    return row >= 0 && column >= 0 && row < d && column < d ? [run.order[row], run.order[column]] : null;
  };
  board.onmousemove = (event) => { const at = cellAt(event); board.title = at ? tip(...at) : ''; };
  board.onclick = (event) => { const at = cellAt(event); if (at) pick(...at); };
}

function showAdjacency() {
  const kept = new Set(state.edges), most = 20, cells = [];
  const dim = themeColour('--heat-tested'), strong = themeColour('--heat-kept');
  for (const test of tests) {
    const at = { row: rank[test.source], column: rank[test.target] };
    if (kept.has(test)) cells.push({ ...at, colour: strong });
    else cells.push({ ...at, colour: `color-mix(in srgb, ${strong} ${Math.round(55 * Math.min(-Math.log10(Math.max(test.p, 1e-30)) / most, 1))}%, ${dim})` });
  }
  heatMap(byId('adjacency-map'), cells, (a, b) => { const edge = testOf.get(a * d + b); if (edge) select({ edge }); },
    (a, b) => { const test = testOf.get(a * d + b); return `${nameOf(a)} → ${nameOf(b)}: ${test ? `p = ${figure(test.p)}${kept.has(test) ? ', kept' : ''}` : 'not tested'}`; });
  byId('adjacency-map').setAttribute('aria-label', `Adjacency: ${plural(state.edges.length, 'kept edge')} of ${plural(tests.length, 'tested pair')}; the table of edges holds the same.`);
}

function showPrecedence() {
  if (!run.precedence) return;
  byId('precedence').hidden = false;
  const cells = [], strong = themeColour('--heat-kept'), dim = themeColour('--heat-ground');
  for (let a = 0; a < d; a++)
    for (let b = 0; b < d; b++)
      if (a !== b && run.precedence[a][b] !== null)
        cells.push({ row: rank[a], column: rank[b], colour: `color-mix(in srgb, ${strong} ${Math.round(100 * run.precedence[a][b])}%, ${dim})` });
  heatMap(byId('precedence-map'), cells, (node) => select({ node }), (a, b) => `${nameOf(a)} before ${nameOf(b)} in ${share(run.precedence[a][b] ?? 0)} of the resampled tables`);
}

function showRun() {
  const total = Object.values(run.timings).reduce((a, b) => a + b, 0), longest = Math.max(1e-9, ...Object.values(run.timings));
  byId('timings').replaceChildren(...Object.entries(run.timings).map(([stage, seconds]) => {
    const bar = h('td', { class: 'bar' }, filledBar(seconds / longest));
    return h('tr', {}, h('th', { scope: 'row' }, stage), h('td', { class: 'number' }, seconds < 0.1 ? `${(1000 * seconds).toFixed(0)} ms` : `${seconds.toFixed(1)} s`), bar);
  }), h('tr', {}, h('th', { scope: 'row' }, 'together'), h('td', { class: 'number' }, `${total.toFixed(1)} s`), h('td')));
  const rows = (record) => Object.entries(record).map(([name, value]) => h('div', {}, h('dt', {}, name.replaceAll('_', ' ')), h('dd', {}, typeof value === 'string' ? value : JSON.stringify(value))));
  byId('settings').replaceChildren(...rows({ method: run.method, seed: run.seed, ...run.settings }));
  byId('versions').replaceChildren(...rows(run.versions));
  if (Object.keys(run.losses).length) byId('losses').append(lossChart(run.losses, 520, 260));
  else byId('loss-part').hidden = true;
}

function showTruth() {
  byId('truth').hidden = !run.truth;
  if (!run.truth) return;
  const { count, shd } = truthMarks(), own = state.cutoff === run.cutoff, fixed = run.truth.scores;
  const card = (word, value, meaning) => h('div', { class: 'score', title: meaning }, h('b', {}, String(value)), h('span', {}, word));
  byId('scores').replaceChildren(
    card('SHD', shd, 'edges to add, remove or turn around'),
    fixed.sid === undefined ? null : card(own ? 'SID' : "SID at the run's cutoff", fixed.sid, 'pairs whose intervention effect would be computed wrongly'),
    fixed.order_divergence === undefined ? null : card('order divergence', fixed.order_divergence, 'true edges that run against the order'),
    ...['correct', 'missing', 'extra', 'reversed'].map((mark) => h('div', { class: `score ${mark}` }, h('b', {}, String(count[mark])), h('span', {}, legendLine(mark), mark))));
}
function legendLine(mark) {
  return s('svg', { class: 'swatch', viewBox: '0 0 30 10', 'aria-hidden': 'true' }, s('g', { class: `edge ${mark}` }, s('path', { class: 'line', d: 'M1 5H21', 'stroke-width': 2 }), s('path', { class: 'tip', d: 'M29 5l-9 -4.4v8.8z' })));
}
