// The panel beside the graph: the run at a glance, one variable, or one edge.
const MEASURES = {
  p_value: ['p-value', 'chance of evidence this strong without an effect'],
  nats: ['likelihood gain (nats)', 'how much the edge improves the leave-one-out likelihood'],
  deviance_explained: ['deviance explained', "share of the effect's variance lost when the cause is dropped"],
  edf: ['degrees of freedom', 'of the fitted curve; 1 is a straight line'],
  f_statistic: ['F statistic', 'of the test that the curve is flat'],
  r2: ['R² of all tested causes', "share of the effect's variance they explain together"],
  p_holm: ['p-value (Holm)', 'adjusted for the number of tests'],
  p_by: ['p-value (Benjamini-Yekutieli)', 'adjusted for the number of tests, false-discovery'],
  frequency: ['frequency', 'share of resampled tables in which the edge was found'],
  direction_frequency: ['direction frequency', 'share of resampled tables with this direction among those that join the two'],
};
const MARKS = { correct: 'in the true graph', extra: 'not in the true graph', reversed: 'the other way round in the true graph' };

const pText = (edge) => (edge.p < 1e-300 ? 'p < 10⁻³⁰⁰' : `p = ${figure(edge.p)}`);
const share = (value) => `${(100 * value).toFixed(0)} %`;

showPanel.last = null;
function showPanel() {
  const choice = state.selected, panel = byId('panel');
  if (!choice) panel.replaceChildren(...overview());
  else if (choice.node !== undefined) panel.replaceChildren(...nodeFacts(choice.node));
  else panel.replaceChildren(...edgeFacts(choice.edge));
  if (showPanel.last !== choice) panel.scrollTop = 0;
  showPanel.last = choice;
}

function overview() {
  const diagnostics = run.inspection ? run.inspection.diagnostics : [];
  const worth = [...diagnostics.filter((one) => one.level === 'doubt'), ...diagnostics.filter((one) => one.level === 'note')];
  const parts = [h('h2', {}, 'What it found')];
  parts.push(h('p', {}, `${plural(state.edges.length, 'edge')} among ${plural(d, 'variable')} from ${run.n_samples.toLocaleString('en')} rows. Click a variable or an arrow to see why.`));
  const strongest = state.edges.slice(0, 6);
  if (strongest.length) parts.push(h('h3', {}, 'Strongest edges'), h('ul', { class: 'links' }, strongest.map((edge) => edgeLine(edge, 'both'))));
  if (diagnostics.length) {
    parts.push(h('h3', {}, worth.length ? 'Before you believe it' : 'No reason for doubt was seen'));
    parts.push(h('ul', { class: 'checks' }, worth.slice(0, 3).map((one) => h('li', { class: one.level }, badge(one.level), h('span', {}, one.text)))));
    if (worth.length) parts.push(h('p', {}, h('a', { href: '#diagnostics' }, worth.length > 3 ? `All ${worth.length} remarks, and what to do` : 'What to do')));
  }
  return parts;
}

const badge = (level) => h('strong', { class: 'badge' }, { fine: 'fine', note: 'look', doubt: 'doubt' }[level]);

function nodeButton(node) {
  const dot = h('i', { class: 'dot' });
  dot.style.background = orderColour(node);
  return h('button', { type: 'button', class: 'name', title: run.names[node], onclick: () => { select({ node }); } }, dot, nameOf(node));
}

function edgeLine(edge, ends) {
  const names = ends === 'both' ? [nodeButton(edge.source), ' → ', nodeButton(edge.target)] : [nodeButton(edge[ends])];
  return h('li', {}, h('span', { class: 'pair' }, ...names), h('button', {
    type: 'button', class: 'evidence', 'aria-label': `Evidence for ${nameOf(edge.source)} to ${nameOf(edge.target)}`, onclick: () => select({ edge }),
  }, pText(edge)));
}

function family(title, edges, end) {
  if (!edges.length) return [h('h3', {}, title), h('p', { class: 'none' }, 'none')];
  return [h('h3', {}, `${title} (${edges.length})`), h('ul', { class: 'links' }, edges.map((edge) => edgeLine(edge, end)))];
}

function relatives(title, nodes) {
  if (!nodes.length) return [];
  const shown = nodes.sort((a, b) => rank[a] - rank[b]);
  return [h('h3', {}, `${title} (${nodes.length})`),
    h('p', { class: 'chips' }, shown.slice(0, 60).map(nodeButton), shown.length > 60 ? ` and ${shown.length - 60} more` : null)];
}

function nodeFacts(node) {
  const parents = state.parents[node], children = state.children[node];
  const direct = new Set(parents.map((e) => e.source)), next = new Set(children.map((e) => e.target));
  const ancestors = [...ancestorsOf(node)].filter((n) => !direct.has(n)), later = [...descendantsOf(node)].filter((n) => !next.has(n));
  say(`${nameOf(node)}, place ${rank[node] + 1} of ${d}: ${plural(parents.length, 'parent')}, ${plural(children.length, 'child', 'children')}.`);
  const parts = [heading(nameOf(node)), h('p', { class: 'sub' }, `place ${rank[node] + 1} of ${d} in the causal order`),
    ...family('Parents', parents, 'source'), ...family('Children', children, 'target'),
    ...relatives('Further ancestors', ancestors), ...relatives('Further descendants', later)];
  if (!run.inspection) return parts;
  const seen = run.inspection, curves = seen.curves.filter((curve) => curve.effect === node);
  parts.push(h('h3', {}, 'Fitted effects'));
  if (curves.length) {
    parts.push(h('p', { class: 'sub' }, `Smooth effect of each parent with the others held, ± 2 standard errors; dots are rows with their residual. Together they explain ${share(seen.r2[node])} of the variance.`));
    for (const curve of curves) parts.push(effectChart(curve, 340, 190));
  } else parts.push(h('p', { class: 'none' }, 'no parent in the run, so nothing was fitted'));
  const gaussian = seen.normality[node] > 0.01;
  parts.push(h('p', { class: 'sub' }, `${curves.length ? 'Residual' : 'Distribution'}: skewness ${figure(seen.skewness[node])}, excess kurtosis ${figure(seen.kurtosis[node])}; ${gaussian ? 'it passes as Gaussian' : `not Gaussian (p = ${figure(seen.normality[node])})`}.`));
  return parts;
}

function heading(...content) {
  return h('div', { class: 'heading' }, h('h2', {}, ...content), h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: () => { select(null); canvas.focus(); } }, '×'));
}

function edgeFacts(edge) {
  const title = `${nameOf(edge.source)} → ${nameOf(edge.target)}`, drawn = state.edges.includes(edge);
  say(`Edge ${nameOf(edge.source)} to ${nameOf(edge.target)}, ${pText(edge)}.`);
  const facts = [['p_value', edge.p], ...Object.entries(edge.measures)].filter(([, value]) => value !== null && value !== undefined);
  const parts = [heading(title)];
  if (!drawn) parts.push(h('p', { class: 'sub' }, 'Not kept at the current cutoff.'));
  if (required.has(edge.source * d + edge.target)) parts.push(h('p', { class: 'sub' }, 'Required: the run was told that this edge is there.'));
  if (run.truth) {
    const mark = truthMarks().marks.get(edge);
    if (mark) parts.push(h('p', { class: `mark ${mark}` }, `${mark}: ${MARKS[mark]}`));
  }
  parts.push(h('p', { class: 'chips' }, nodeButton(edge.source), nodeButton(edge.target)));
  parts.push(h('h3', {}, 'Evidence'), h('table', { class: 'facts' }, h('tbody', {}, facts.map(([name, value]) => {
    const [word, meaning] = MEASURES[name] || [name.replaceAll('_', ' '), ''];
    return h('tr', {}, h('th', { scope: 'row', title: meaning }, word), h('td', {}, figure(value)));
  }))));
  const curve = curveOf.get(edge.source * d + edge.target);
  if (curve) {
    const bend = curve.straightness > 0.98 ? 'It is a straight line' : `A straight line carries ${share(curve.straightness)} of it`;
    parts.push(h('h3', {}, 'Fitted effect'), effectChart(curve, 340, 210), h('p', { class: 'sub' }, `${bend} (${figure(curve.edf)} degrees of freedom).`));
    const left = curve.spread_p_value < 0.001 && curve.spread_share > 0.05;
    parts.push(h('h3', {}, 'What is left over'), residualChart(edge, 340, 190), h('p', { class: 'sub' }, left
      ? `The spread of the residual varies with the cause (${share(curve.spread_share)} of it explained): additive noise is in doubt here.`
      : 'No sign that the residual depends on the cause.'));
  } else if (run.inspection) parts.push(h('p', { class: 'none' }, "No curve: the edge is not in the run's own graph, so its effect was not fitted."));
  return parts;
}
