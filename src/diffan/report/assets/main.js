// Start: draw everything once, then follow the reader.
const slider = byId('cutoff');
const LEAST = 1e-20;
const smallest = Math.max(tests.reduce((low, test) => (test.judged > 0 ? Math.min(low, test.judged) : low), 1e-3), LEAST);
const ends = [Math.log10(Math.min(smallest, Math.max(run.cutoff, LEAST)) / 2), Math.log10(Math.max(Math.min(run.tests.complete_below, 0.5), run.cutoff))];
const toPlace = (p) => Math.round((1000 * (Math.log10(Math.max(p, 10 ** ends[0])) - ends[0])) / (ends[1] - ends[0] || 1));

function setCutoff(p, fitAgain) {
  state.cutoff = p;
  slider.value = toPlace(p);
  chooseEdges();
  if (state.selected && state.selected.edge && state.selected.edge.missing) state.selected = null;
  const text = `${run.adjusted ? 'adjusted ' : ''}p < ${figure(p)}`;
  byId('cutoff-value').textContent = text;
  byId('edge-count').textContent = plural(state.edges.length, 'edge');
  slider.setAttribute('aria-valuetext', `${text}, ${plural(state.edges.length, 'edge')}`);
  byId('cutoff-reset').hidden = p === run.cutoff;
  drawGraph();
  showPanel();
  showTruth();
  if (fitAgain) fit(); else applyView();
  clearTimeout(setCutoff.later);
  setCutoff.later = setTimeout(() => { showEdges(); showAdjacency(); }, fitAgain === 'first' ? 0 : 120);
}

function search() {
  const wanted = byId('search').value.trim().toLowerCase();
  const found = wanted ? run.order.filter((node) => run.names[node].toLowerCase().includes(wanted)) : [];
  for (const box of scene.nodes) box.classList.remove('match');
  for (const node of found) scene.byNode[node].classList.add('match');
  byId('search-count').textContent = wanted ? (found.length ? `${found.length} found` : 'not found') : '';
  return found;
}

function searchKey(event) {
  if (event.key === 'Escape') { byId('search').value = ''; search(); return; }
  if (event.key !== 'Enter') return;
  event.preventDefault();
  const found = search(), at = found.indexOf(state.selected ? state.selected.node : -1);
  if (found.length) select({ node: found[(at + 1) % found.length] });
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
  showAdjacency();
  showPrecedence();
}

function start() {
  listenToPointers();
  byId('zoom-in').addEventListener('click', () => zoom(1.3));
  byId('zoom-out').addEventListener('click', () => zoom(1 / 1.3));
  byId('fit').addEventListener('click', fit);
  byId('print').addEventListener('click', () => window.print());
  byId('search').addEventListener('input', search);
  byId('search').addEventListener('keydown', searchKey);
  slider.addEventListener('input', () => setCutoff(10 ** (ends[0] + ((ends[1] - ends[0]) * Number(slider.value)) / 1000), true));
  byId('cutoff-reset').addEventListener('click', () => { setCutoff(run.cutoff, true); slider.focus(); });
  byId('more-edges').addEventListener('click', () => { table.all = true; showEdges(); });
  byId('show-truth').addEventListener('change', (event) => { state.showTruth = event.target.checked; setCutoff(state.cutoff, true); showEdges(); });
  byId('theme').addEventListener('click', () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
  window.addEventListener('resize', () => { clearTimeout(start.later); start.later = setTimeout(() => { scene.size = null; fit(); }, 80); });
  window.addEventListener('beforeprint', () => {
    start.theme = document.documentElement.dataset.theme;
    setTheme('light');  // paper is white
    table.all = true;
    showEdges();
    select(null);
    scene.size = null;
    fit();
  });
  window.addEventListener('afterprint', () => { setTheme(start.theme); scene.size = null; fit(); });
  canvasSize();
  document.documentElement.dataset.theme = window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  byId('theme').textContent = document.documentElement.dataset.theme === 'dark' ? 'Light' : 'Dark';
  setCutoff(run.cutoff, 'first');
  showDiagnostics();
  showOrder();
  showRun();
  showPrecedence();
  byId('rows-kept').textContent = run.inspection ? `This page holds ${plural(run.inspection.values[0] ? run.inspection.values[0].length : 0, 'sampled row')} of the table${run.inspection.rows < run.n_samples ? `; curves were fitted on ${run.inspection.rows} of ${run.n_samples} rows` : ''}.` : 'This page holds no rows of the table.';
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
start();
