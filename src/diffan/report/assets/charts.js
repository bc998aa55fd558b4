// Small drawings with axes: effect curves, residual scatter, losses.
function niceTicks(low, high, count) {
  if (!(high > low)) return [low];
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((one) => one >= raw);
  const ticks = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at++) ticks.push(at * step);
  return ticks;
}

function tickText(value) {
  if (Math.abs(value) < 1e-12) return '0';
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(0) : String(Number(value.toPrecision(4)));
}

function axes({ width, height, x, y, xLabel, yLabel, label }) {
  const pad = { left: 46, right: 10, top: 8, bottom: 36 };
  const sx = (value) => pad.left + ((value - x[0]) / (x[1] - x[0] || 1)) * (width - pad.left - pad.right);
  const sy = (value) => height - pad.bottom - ((value - y[0]) / (y[1] - y[0] || 1)) * (height - pad.top - pad.bottom);
  const root = s('svg', { class: 'chart', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label });
  for (const tick of niceTicks(y[0], y[1], 4)) {
    root.append(s('line', { class: 'grid', x1: pad.left, x2: width - pad.right, y1: sy(tick), y2: sy(tick) }));
    root.append(s('text', { class: 'tick', x: pad.left - 6, y: sy(tick) + 3.5, 'text-anchor': 'end' }, tickText(tick)));
  }
  for (const tick of niceTicks(x[0], x[1], 5))
    root.append(s('text', { class: 'tick', x: sx(tick), y: height - pad.bottom + 14, 'text-anchor': 'middle' }, tickText(tick)));
  root.append(s('line', { class: 'axis', x1: pad.left, x2: width - pad.right, y1: height - pad.bottom, y2: height - pad.bottom }));
  root.append(s('text', { class: 'axis-name', x: (pad.left + width - pad.right) / 2, y: height - 5, 'text-anchor': 'middle' }, clip(xLabel, 44)));
  const middle = (pad.top + height - pad.bottom) / 2;
  root.append(s('text', { class: 'axis-name', x: 11, y: middle, 'text-anchor': 'middle', transform: `rotate(-90 11 ${middle})` }, clip(yLabel, 26)));
  return { root, sx, sy };
}

const clip = (text, most) => (Array.from(text).length > most ? Array.from(text).slice(0, most - 1).join('') + '…' : text);
const pathOf = (points) => points.map(([x, y], k) => `${k ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');

function span(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (Number.isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
  if (!(high > low)) { low -= 0.5; high += 0.5; }
  const margin = (high - low) * 0.05;
  return [low - margin, high + margin];
}

const inUnits = (node) => (run.transform === 'log' ? `log ${nameOf(node)}` : run.transform === 'rank' ? `${nameOf(node)} (normal scores)` : nameOf(node));

function curveAt(curve, x) {
  const last = curve.fit.length - 1, at = Math.min(Math.max(((x - curve.low) / (curve.high - curve.low || 1)) * last, 0), last);
  const low = Math.min(Math.floor(at), Math.max(last - 1, 0));
  return last ? curve.fit[low] + (curve.fit[low + 1] - curve.fit[low]) * (at - low) : curve.fit[0];
}

function effectChart(curve, width, height) {
  const seen = run.inspection, last = curve.fit.length - 1;
  const xs = curve.fit.map((_, k) => curve.low + ((curve.high - curve.low) * k) / Math.max(last, 1));
  const values = seen.values[curve.cause], residuals = seen.residuals[curve.effect];
  const dots = values.map((x, k) => [x, curveAt(curve, x) + residuals[k]]).filter(([x]) => x >= curve.low && x <= curve.high);
  const upper = curve.fit.map((f, k) => f + 2 * curve.error[k]), lower = curve.fit.map((f, k) => f - 2 * curve.error[k]);
  const { root, sx, sy } = axes({
    width, height, x: [curve.low, curve.high], y: span([...upper, ...lower, ...dots.map(([, y]) => y)]),
    xLabel: inUnits(curve.cause), yLabel: `effect on ${nameOf(curve.effect)}`,
    label: `Partial effect of ${nameOf(curve.cause)} on ${nameOf(curve.effect)}, ${(100 * curve.straightness).toFixed(0)} percent of it a straight line`,
  });
  for (const [x, y] of dots) root.append(s('circle', { class: 'dot', cx: sx(x).toFixed(1), cy: sy(y).toFixed(1), r: 1.8 }));
  const band = [...xs.map((x, k) => [sx(x), sy(upper[k])]), ...xs.map((x, k) => [sx(x), sy(lower[k])]).reverse()];
  root.append(s('path', { class: 'band', d: pathOf(band) + 'Z' }));
  root.append(s('path', { class: 'curve', d: pathOf(xs.map((x, k) => [sx(x), sy(curve.fit[k])])) }));
  return root;
}

function residualChart(edge, width, height) {
  const seen = run.inspection, xs = seen.values[edge.source], ys = seen.residuals[edge.target];
  const { root, sx, sy } = axes({
    width, height, x: span(xs), y: span(ys), xLabel: inUnits(edge.source), yLabel: `residual of ${nameOf(edge.target)}`,
    label: `Residual of ${nameOf(edge.target)} against ${nameOf(edge.source)}, ${xs.length} sampled rows`,
  });
  root.append(s('line', { class: 'zero', x1: sx(span(xs)[0]), x2: sx(span(xs)[1]), y1: sy(0), y2: sy(0) }));
  xs.forEach((x, k) => root.append(s('circle', { class: 'dot strong', cx: sx(x).toFixed(1), cy: sy(ys[k]).toFixed(1), r: 2 })));
  return root;
}

function lossChart(losses, width, height) {
  const names = Object.keys(losses), all = names.flatMap((name) => losses[name].y.filter((v) => v !== null));
  const last = Math.max(1, ...names.map((name) => losses[name].x[losses[name].x.length - 1]));
  const { root, sx, sy } = axes({
    width, height, x: [0, last], y: span(all), xLabel: run.loss_axis, yLabel: 'loss',
    label: `Loss curves: ${names.join(', ')}`,
  });
  names.forEach((name, which) => {
    const { x, y } = losses[name];
    const points = x.map((at, k) => [at, y[k]]).filter(([, v]) => v !== null).map(([at, v]) => [sx(at), sy(v)]);
    root.append(s('path', { class: `loss loss-${which % 4}`, d: pathOf(points) }));
  });
  const legend = h('p', { class: 'legend' }, names.map((name, which) =>
    h('span', {}, s('svg', { class: 'swatch', viewBox: '0 0 22 8' }, s('path', { class: `loss loss-${which % 4}`, d: 'M1 4H21' })), name)));
  return h('div', {}, legend, root);
}
